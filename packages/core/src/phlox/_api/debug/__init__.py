"""Looking into programs while they run, and calls of Python and of foreign functions from them."""
