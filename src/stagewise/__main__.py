"""`python -m stagewise` is the command `stagewise`."""

from stagewise.commands.main import entry

if __name__ == "__main__":
    entry()
