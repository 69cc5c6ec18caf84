"""The web page and the HTTP API: one process, one port, over the same engine as the command line.

A request goes through `access` (who is it, may they), then to a page or to the API. Both read from one `Desk`: a run is
folded once, and everything on a page comes from that one state, at one sequence number. Pages only read. Every change goes
through the API, so decisions are made in one place. The server renders everything; the browser adds the keyboard, the undo
and the live updates.

    server.py   starts the server and prints its address
    site.py     the Starlette app: routes and middleware
    access/     tokens, roles, cookies, and the checks of Host and Origin
    desk.py     what pages and the API can ask about runs
    api/        /api/v1: handlers, problems, server-sent events, OpenAPI
    pages/      pure functions from what the desk says to HTML, and the routes that call them
    graph/      the workflow with its back edges as SVG, laid out by ourselves
    templates/  Jinja2 templates
    static/     style sheets and scripts, served as they are
"""
