"""Ways to tell people about questions: web hooks, commands and apprise; and what was sent already."""
