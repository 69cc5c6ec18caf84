"""`python -m backedge`: the command, where its script is not on the path."""

from backedge.cli.main import entry

if __name__ == "__main__":
    entry()
