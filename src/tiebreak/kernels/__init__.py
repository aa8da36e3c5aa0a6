"""The engine room: arrays in, arrays out, nothing about files or names."""
