"""A fitted model that is kept: saved and loaded, asked about new tasks, told of new responses.

`records` turns what a model holds into plain arrays and JSON, and back; `model_file` says what is
kept. `predict` labels new tasks by workers as they are known. `update` goes on with more responses,
links and gold: exactly where responses are kept, else from counts. `online` fits tasks batch by
batch, and `events` feeds it from a stream that no kill can harm.
"""
