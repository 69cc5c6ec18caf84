"""Who may do what: tokens, roles, cookies, and the checks of Host and Origin."""
