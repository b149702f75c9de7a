"""`python -m localsmooth`."""

from localsmooth.cli import main

if __name__ == "__main__":
    main()
