"""``python -m phlox doctor``: what is installed and set here, and whether the devices compute what NumPy does.

A program for the command line, which nothing imports. Its checks use the public API alone, as a user's program would;
its facts also come from the modules that read the settings, the devices and the cache.
"""
