"""The installed command `backedge`. It imports inside the function, so that Ctrl-C is handled from the first moment."""

import sys


def entry() -> None:
    """Run the command. Errors are one sentence, not a traceback."""
    try:
        from backedge.cli.running import code_of

        code = code_of()
    except KeyboardInterrupt:
        print("backedge: interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    entry()
