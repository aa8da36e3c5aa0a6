"""Streams of events into a model file: read by `events`, kept by `journal`, run by `service`."""
