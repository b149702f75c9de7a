"""`python -m localsmooth.cli`, the same as `python -m localsmooth`."""

from localsmooth.cli import main

if __name__ == "__main__":
    main()
