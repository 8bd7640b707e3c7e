"""Arrays from data, shapes, files and formulas; dtypes."""
