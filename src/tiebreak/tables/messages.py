"""What errors and notes of this package say, by code; `wording.Wording` formats their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tiebreak.errors import Message, register
from tiebreak.wording import counted, cut, say, worded

# Messages that depend on more than how a field is written


def _file_missing(file: Path, meant: object, folder: Path, is_row: bool) -> str:
    hint = f"Did you mean {meant}?" if meant else f"Check the name and the folder ({folder})."
    if not folder.is_dir():
        hint = f"The folder {folder} does not exist."
    return f"There is no file {file}. {hint}" + (
        " A list of texts names files; rows are tuples." if is_row else ""
    )


def _no_id(column: str, value: Any, where: str) -> str:
    cure = "Use text or a number."
    if isinstance(value, list):
        cure = "multi_label=True makes one yes/no task of each label."
    elif isinstance(value, tuple):
        cure = "Make it text, for instance with str()."
    return say(
        "{}: column {!r} holds {:short} ({}), which cannot be an id or a label. {}",
        *(where, column, value, type(value).__name__, cure),
    )


def _header_missing(table: str, columns: Sequence[str], needed: Sequence[str]) -> str:
    guess = dict(zip(needed, columns, strict=False))
    return (
        f"{table}: the header is missing: the first line is {cut(','.join(columns), 200)!r}.\n"
        f"Add {','.join(needed)} as the first line; or, if this is a header, name its columns "
        f"with columns={guess!r}."
    )


def _column_missing(
    missing: Sequence[str], columns: Sequence[str], close: Mapping[str, str], **fields: Any
) -> str:
    hint = "".join(f" Did you mean {there!r} for {name}?" for name, there in close.items())
    guess = {name: close.get(name, "…") for name in missing}
    may_be_wide = list(missing) == ["worker", "label"] and len(columns) >= 3
    wide = "\nIf each other column is a worker, read the table with wide=True."
    return (
        f"{fields['table']} has no column for {' and '.join(missing)} ({fields['what']} need "
        f"{', '.join(fields['needed'])}). "
        + say("Its columns are {:list}.", columns)
        + f"{hint}\nRename it, or name it with columns={guess!r}.{wide if may_be_wide else ''}"
    )


def _questions(questions: Any) -> str:
    if not isinstance(questions, Mapping):
        return ", ".join(map(repr, questions)) or "none"
    return ", ".join(f"{name!r} ({n:,} answers)" for name, n in questions.items()) or "none"


def _several_questions(file: str, questions: Any) -> str:
    first = next(iter(questions))
    return (
        f"{file} holds {len(questions)} questions: {_questions(questions)}.\n"
        f"Choose one with question={first!r}."
    )


def _no_answers(file: str, format: str, reasons: Sequence[str], others: Sequence[str]) -> str:
    why = f" ({'; '.join(reasons)})" if reasons else ""
    if others:
        why += f". What it holds is not one class per task: {', '.join(others)}"
    return f"{file} ({format}) holds no answer that can be used{why}."


def _answers_read(
    dropped: Sequence[str], left_out: Sequence[str], not_read: Sequence[str], **found: Any
) -> str:
    parts = [say("read {n_read:count answer}, kept {n_kept:,}", **found)]
    if found["n_empty"]:
        parts.append(say("{n_empty:,} without an answer", **found))
    parts += [f"dropped {each}" for each in dropped]
    parts += [f"left out {each}" for each in left_out]
    if found["n_known"]:
        parts.append(say("{n_known:count task} {n_known:verb have} a known label", **found))
    if not_read:
        how = "" if found["is_asked"] else f" (question={not_read[0]!r} reads one)"
        parts.append(f"questions not read: {', '.join(map(repr, not_read))}{how}")
    return f"{found['file']} ({found['format']}): {'; '.join([*parts, *found['remarks']])}."


def _labels_alike(labels: Sequence[object]) -> str:
    from tiebreak.data.ids import difference

    return (
        f"Labels {', '.join(map(repr, labels))} {difference(labels)}, and are different classes. "
        "Write them alike, or join them with fold_labels=True."
    )


MESSAGES: dict[str, Message] = {
    # Files
    "address-empty": lambda address, pattern: (
        f"{address} holds {f'no file that matches {pattern}' if pattern else 'no table'}. "
        "Check the address."
    ),
    "file-emptied": "{file} was emptied while it was read. Read the files again.",
    "csv-broken": lambda file, line, reason: (
        f"{file} cannot be read as CSV: {reason}."
        if line is None
        else f"{file}, line {line:,}: {reason}. Repair the row."
    ),
    "file-empty": lambda file, is_stdin: (
        f"{file} is empty: it has no header and no rows."
        + (" It can be read only once." if is_stdin else "")
    ),
    "file-missing": _file_missing,
    "file-name-empty": "The name of a file is empty. Name one; '.' is this folder.",
    "file-named-twice": "{file} is named twice. Name each file once.",
    "file-unreadable": "{file} cannot be read: {reason}",
    "foreign-file": "{file} is {what}, which cannot be read. {cure}.",
    "gzip-broken": "{file} is a broken gzip file ({reason}). Copy or make it again.",
    "keys-in-address": "Leave keys out of the address {scheme}://…: it is shown and written down. "
    "Give them in the environment or in the configuration of the file system.",
    "no-file-name": "Files are named by a path, a pattern or a list of them; got {value!r}.",
    "no-match": "No file matches {pattern}. Check the pattern and the folder ({folder}).",
    "no-tables": "{folder} holds no tables (.csv, .parquet, .jsonl …); it holds {names:list 5}.",
    "not-utf-8": "{file}, line {line}: byte 0x{byte:02x} at offset {offset:,} is not UTF-8.\n"
    "Save the file again as UTF-8, for instance: iconv -f WINDOWS-1252 -t UTF-8 {file}",
    "nul-bytes": "{file} begins with NUL bytes, which no text does: it is damaged, or no table. "
    "Write it again as CSV, JSON lines or Parquet.",
    "packed-among-tables": "{folder} is a folder of packed responses, which is read alone. Fit "
    "several of them with --out-of-core (tb.shards.fit), or name the tables of which it was "
    "made.",
    "separator-unknown": "{file} says that {mark!r} separates its fields. Save it with a comma, a "
    "semicolon, a tab or '|' instead.",
    "some-files-empty": "{n:count file} of {of:,} empty: left out.",
    "stdin-among-files": "Standard input ('-') cannot be one of several files. Write it to a file.",
    "stdin-closed": "There is no standard input to read. Name a file instead of '-'.",
    "utf-16-broken": "{file} begins as UTF-16 text, but is none at offset {offset:,}. "
    "Save it again as UTF-8.",
    # Tables
    "bad-json": "{file}, record {record:,}, line {line:,}: {reason} (near {near!r}). Repair it, or "
    'export the file again. Each object is one row: {{"task": …, "worker": …, "label": …}}',
    "bad-row": "Row {row:,} must be a tuple ({parts}); got {value!r}.",
    "half-character": "The text {text!r} holds half a character (a lone surrogate), which UTF-8 "
    "cannot hold. Correct this id or label.",
    "matrix-as-rows": "An array of shape {shape} is read as rows of task, worker, label. If its "
    "columns are workers and its values labels, pass wide=True.",
    "mixed-types": lambda is_frame, **fields: say(
        "Column {column!r} mixes types: {where} holds {value:short} ({type}), {other_where} "
        "holds {other:short} ({other_type}).\nMake them one type, such as text"
        + (", for instance: df[{column!r}] = df[{column!r}].astype(str)" if is_frame else "."),
        **fields,
    ),
    "no-column": "Column {column!r} must be a list or an array of one dimension; got "
    "{value:short}.",
    "no-delimiter": "{file}, line {line}: more than {n:,} characters without a comma, tab, "
    "semicolon or '|': this is no table.",
    "no-frame": "This {type} is not a table: {reason}.",
    "no-id": _no_id,
    "no-object": lambda file, record, line, type: (
        f"{file}, record {record:,}{'' if line is None else f', line {line:,}'}: "
        f"expected a JSON object, got {type}. Write one object per row."
    ),
    "no-rows": "{table} holds no rows. Add at least one row.",
    "no-table": "A {type} cannot be read as a table. Pass a path, a frame (pandas, polars, "
    "pyarrow, DuckDB), a dictionary of columns or a list of rows.",
    "other-category-order": "The files order the categories of {column!r} differently: classes are "
    "sorted.",
    "other-kind": "Column {column!r} holds {kind} in {file}, and {other} in {other_file}. "
    "Write all files with one type, for instance text.",
    "other-type-of-ids": "{what}= holds ids that do not match those of the table, which are "
    "{type}: {ids!r}. Give both the same type.",
    "parquet-broken": "{file} is a broken Parquet file ({reason}). Make it again.",
    "quote-unclosed": "{file}, line {line:,}: a quote is opened that is never closed, so the rows "
    'after it would be lost.\nClose the quote; a quote inside a quoted field is written twice: "".',
    "ragged-row": lambda file, line, n, expected, fields: (
        f"{file}, line {line:,}: expected {expected} columns, got {n}: "
        f"{cut(', '.join(map(repr, fields)), 80)}\n"
        "Complete the row; a field that holds the delimiter must be in double quotes."
    ),
    "spaces-stripped": "{table}: spaces around {n:count value} (ids, labels) were left out.",
    "table-in-one-object": "{file} holds a whole table in one object. Write one object per row; "
    "with pandas: df.to_json(path, orient='records', lines=True)",
    "unequal-columns": "{table}: columns must be equally long; their lengths are {lengths}.",
    "unfit-values": "Column {column!r} holds values such as {value!r} that no table can hold "
    "({reason}). Write them as text.",
    # Columns
    "column-in-one-file": "{table} has no column {column!r}, which {owner} has. Its columns are "
    "{columns:list}.\nAdd it, or leave it out of all files.",
    "column-missing": _column_missing,
    "columns-alike": "{table} has {n} columns called {column!r}. Rename all but one.",
    "columns-of-packed": "columns= names columns of tables; packed responses have none. "
    "Leave it out.",
    "columns-read-as": lambda table, pairs: (
        f"{table}: read column {', '.join(f'{name!r} as {role}' for name, role in pairs)}."
    ),
    "header-missing": _header_missing,
    "idle-option": lambda file, options, why: (
        f"{file}: {why}, so leave out {', '.join(f'{name}=' for name in options)}."
    ),
    "list-of-names": "{option} takes a list of names; got {value!r}.",
    "named-twice": "The {role} is named twice: columns={{{role!r}: …}} and {option}=. Give one of "
    "them.",
    "no-such-column": "{table} has no column {column!r} for {role}. Its columns are "
    "{columns:list}.{meant:meant}",
    "two-columns": "{table} has {n} columns that may be the {role}: {candidates:list}.\nChoose "
    "one with columns={{{role!r}: {candidates[0]!r}}}.",
    # Wide tables
    "wide-found": lambda table, workers, alone: say(
        "{} has one column per worker: {:list} are read as workers.{} "
        "Name the workers with worker_columns= if that is wrong.",
        *(table, workers, say(" {:list}: left out.", alone) if alone else ""),
    ),
    "wide-idle-tasks": "{table}: {n:count task} {n:verb have} no answer, and {n:verb are} left "
    "out. The same table as tasks= keeps all.",
    "wide-read": "{table} (wide): read {n_cells:count cell} of {n_workers:count worker}, kept "
    "{n_kept:,}; {n_empty:,} empty.",
    "wide-role": "A wide table has one column per worker, and its tasks in one, which "
    "columns={{'task': …}} names: leave {role} out.",
    "wide-shape": "A wide array has tasks × workers; got shape {shape}.",
    "wide-strangers": "{table}: {alone:list} share no label with the other columns. If not all are "
    "workers, name those that are: worker_columns={others!r}.",
    "wide-task-twice": "{table}: {n:count row} {n:verb repeat} a task, but a wide table has one "
    "row per task. Name the column of tasks with columns={{'task': …}}.",
    "wide-without-workers": "{table} is not wide: it has no column beside the task.",
    # Formats
    "answers-read": _answers_read,
    "archive-broken": "{file}: its file {member} cannot be read ({reason}). Unpack the archive.",
    "argilla-lengths": "{at}: question {question!r} has {lengths[0]} responses, {lengths[1]} users "
    "and {lengths[2]} states. Export the file again.",
    "bad-pattern": "{option}={pattern!r} is no regular expression: {reason}.",
    "bad-pointer": "A JSON pointer starts with '/', such as /verdict; got {pointer!r}.",
    "column-known": "{file} is a file of {format}, whose {role} is known: columns= "
    "does nothing. Leave it out, or name task, worker and label.",
    "doccano-without-users": "{file} does not say who gave which label: doccano leaves users out "
    "where a project shares its annotations.\nTurn off 'Share annotations across all users' in the "
    "project, and export the zip archive of one file per user.",
    "key-missing": "{at}: {key!r} is missing (there is {keys:list 12}). Export the file again.",
    "known-twice": "{at}: task {task!r} is known to be {label!r} here and {before!r} in {where}. "
    "Keep one of them.",
    "lists-unequal": "{at}: {workers!r} holds {n[0]} workers, but {labels!r} {n[1]} labels. "
    "Make them equally many.",
    "mturk-json": "{at}: {key} is not JSON: {reason}.",
    "no-answers": _no_answers,
    "no-class": "{at}: {value:short} is not one class: a ranking, a span or the like cannot be "
    "fused. Choose another question with question=.",
    "no-gold": "{file} ({format}) marks no label as known.",
    "no-label-in-text": "{file}: in {n:,} of {of:,} answers no label was found, such as in "
    "{text:short 80}.\n"
    "Say where it is: label_pattern='verdict: (\\w+)', or label_pointer='/verdict' for JSON.",
    "no-list-of-workers": "{at}: there is no list of workers, as the first row has one.",
    "no-question": lambda file, question, questions: (
        f"{file} has no question {question!r}. Its questions are: {_questions(questions)}."
    ),
    "no-records-of-format": "{file} holds no records of format {format!r}.",
    "no-baseline": "{at}: the file does not name the model that all others were compared with. Say "
    "which it is: baseline='gpt-4-0314'.",
    "no-winner": "{at}: the winner is {value:short}; expected model_a, model_b, tie, or the name "
    "of one of the two models.",
    "no-worker": "{at}: the answer names no worker. Fill in who gave it, or remove it.",
    "null-among-labels": "{at}: one of the labels {value:short} is null. Fill it in or remove it.",
    "object-expected": "{at}: expected an object, got {value:short}.",
    "pattern-and-pointer": "Give a pattern or a pointer to the label, not both.",
    "prodigy-answer": "{at}: 'answer' must be one of {allowed:list}, got {value!r}.",
    "several-labels": "{at}: the answer holds {n} labels: {value:short}. tiebreak takes one "
    "class per answer. multi_label=True makes one yes/no task of each label.",
    "several-questions": _several_questions,
    "spans-without-text": "{at}: spans are marked, and there is no text that they are in.",
    "span-outside-text": "{at}: span {span} is not inside the text, of {n:,} characters.",
    "spans-overlap": "{at}: two spans of {worker!r} in text {text!r} overlap: {one} and {other}. "
    "Correct one, or say which counts: nested='longest' or nested='first'.",
    "spans-nested": "{n:count span} inside or across others left out (nested={nested!r}).",
    "spans-without-token": "{n:count span} without a token of their own left out.",
    "spans-read": lambda dropped, **fields: say(
        "{file} ({format}): read {n_spans:count span} in {n_texts:count text}, of "
        "{n_tokens:count token}{lost}.",
        lost="".join(f"; dropped {each}" for each in dropped),
        **fields,
    ),
    "tags-turned": "{file}: tags are {scheme}; read as B-, I- and O.",
    "tokens-differ": "{file}: {n:,} of {n_tokens:count token} of {worker!r} are not those of the "
    "others. Export all from one tokenisation.",
    "tokens-dropped": "{n:count token} that not all workers have the same left out where they "
    "differ.",
    "conll-line": "{at}: a line of a CoNLL file has a token and its tags; got {value!r}.",
    "conll-no-tags": "{file} has no column of tags (B-X, I-X, O).",
    "no-spans-in-file": "{file} marks no spans, so that there are no tokens to write.",
    "spans-need-texts": "{to} needs the texts that spans are in: texts= a table of task and text, "
    "or the export that they come from.",
    "texts-of-other-spans": "There is no text for {n:,} sequences of these spans, such as "
    "{name!r}.",
    "no-span-below": "No span has a probability below {below}.",
    "spans-of-no-place": "These spans have no columns begin and end: tokens were read without "
    "places in their text.",
    "task-pattern-groups": "task_pattern={pattern!r} needs a group for the task: "
    "(?P<task>…), and (?P<run>…) and (?P<order>…) where ids have these; or one group without a "
    "name.",
    "task-pattern-misses": "{at}: the id {id!r} does not match task_pattern={pattern!r}.",
    "toloka-task": "{at}: the row has neither {column} nor any INPUT: column with a value.",
    "tool-and-table": "{file} is of {format}, and {plain} is a plain table: they cannot be read "
    "together. Make plain tables first: tiebreak convert IN -o FILE.csv",
    "value-empty": "{at}: {key!r} is empty. Fill it in, or remove the record.",
    "wrong-type": "{at}: {key!r} must be {wanted}, got {value:short}.",
    # Responses
    "cannot-turn": "{table}: verdicts as shown can be turned back where labels are two (and ties), "
    "and column {column!r} has values such as AB and BA, or true and false; its values are "
    "{orders:list}. Rename them, or turn verdicts back beforehand.",
    "gold-in-file": "{n:,} known labels are in the file; read_gold reads them.",
    "label-for-nothing": "The label {label!r} is read as a class of its own. If it means no "
    "answer, leave the field empty.",
    "labels-alike": _labels_alike,
    "labels-folded": "{n:count label} joined into {n_classes:,} classes.",
    "many-classes": "There are {n:,} classes for {n_tasks:,} tasks: is this the label column? Text "
    "answers must be grouped into classes first.",
    "no-order": "{table}: column {column!r} has more than {n} values, so it is not read as the "
    "order of presentation.",
    "number-twins": lambda n, **fields: say(
        "The {what}s {first!r} and {other!r}{more} are the same number, and are different {what}s. "
        "Write them alike if they are one.",
        more=f" (and {counted(n - 1, 'more pair')})" if n > 1 else "",
        **fields,
    ),
    "order-found": "{table}: column {column!r} tells the order in which answers were shown. "
    "{label!r} is taken to be the same answer in every order. If it is what was shown first, say "
    "turned=False; if not, turned=True ends this note.",
    "order-not-told": "{table}: verdicts such as {label!r} name what was shown in a place. Column "
    "{column!r} has the values {orders:list}, which do not say where each answer was shown, so no "
    "verdict is turned back: labels name places, not answers. Call the orders AB and BA.",
    "orders-as-workers": "{table}: column {column!r} is the order of presentation; each worker and "
    "order is a worker of its own.",
    "packed-rows": "{source} holds packed responses, whose rows are settled. Name the table of "
    "which they were made.",
    "rows-against-time": "{n:count repeated response} {n:verb are} earlier by column {column!r} "
    "than "
    "the row before: the last row counts, not the latest. If the latest should count, sort the "
    "table by {column!r}.",
    "soft-votes": "{table}: probabilities of {n:,} classes are soft votes: a vote for the "
    "likeliest class, which counts as far as its probability predicts agreement with others.",
    "turned-back": lambda table, column, orders, pair: (
        f"{table}: verdicts are as shown; those of {column} {' and '.join(map(repr, orders))} were "
        f"turned back ({pair[0]!r} and {pair[1]!r} exchanged)."
    ),
    "turned-without-order": "{table} has no column that tells the order, so turned= does "
    "nothing. Name it with order_column=, or leave the option out.",
    "weights-found": "{table}: column {column!r} says how often each response counts. If it means "
    "something else, rename it.",
    # Labels and texts
    "item-against-itself": "{table}: {n:count verdict} on an item against itself: {shown}. "
    "Remove these rows.",
    "no-verdict": "{table}: {n:count verdict} {n:verb are} neither an item of the pair nor a word "
    "such as first, second, tie, A>B: {shown}.",
    "no-side": "{table}: no pair of columns holds {name!r} of the two items, such as "
    "{name}_first and {name}_second.",
    "verdicts-empty": "{n:count row} without a verdict left out.",
    "verdicts-plain": lambda strong, bad: " ".join(
        words
        for n, words in (
            (strong, f"{counted(strong, 'verdict')} A>>B or B>>A counted as A>B or B>A."),
            (bad, f"{counted(bad, 'verdict')} 'both bad' counted as ties."),
        )
        if n
    ),
    "no-chance": "{n:,} chances of being drawn are not above 0 and at most 1: {shown}.",
    "no-column-of-class": "{table}: label {label!r} has no column probability_{label}. Add it, or "
    "remove all probability_… columns.",
    "no-probability": "{n:count value} of {column} {n:verb are} not between 0 and 1: {shown}. "
    "Correct them, or remove the column.",
    "nothing-to-show": "{table}: nothing to show. Beside task it needs a column text, markdown, "
    "image or audio.",
    "odd-sums": "{table}: class probabilities of {n:count row} do not sum to 1 ({where}: "
    "{sum:.6g}). Correct them, or remove all probability_… columns.",
    "texts-twice": "{n:count text} {n:verb are} given twice: the last one of each counts.",
    "two-labels": "{table}: task {task!r} has two labels ({where[0]}; {where[1]}). Keep one of "
    "them.",
    "value-missing": "{table}: {n:count row} {n:verb have} no {what} ({where}). Fill it in or "
    "remove the row.",
    # Features
    "feature-not-finite": "Column {column!r} of features has no finite number for {n:count task}, "
    "first for {task!r}. Fill in what is missing, or leave the column out.",
    "features-like-ids": "Every task has a value of its own in {columns:list} of the features, as "
    "in ids. What ids tell of classes is no knowledge of tasks: choose other columns.",
    "features-no-matrix": "Features must be rows of finite numbers, one row a task, all of one "
    "length; or one text a task.",
    "features-twice": "Task {task!r} has different features ({where[0]}; {where[1]}). Keep one row "
    "of each task.",
    "features-without-task": "{where}: the row of features has no task. Fill it in, or remove it.",
    "no-features": "{table} has no column beside the task: nothing to learn from.",
    "npy-without-tasks": "{file} holds rows without tasks: name them in the same order with "
    "tasks=, or give (tasks, array).",
    "tasks-without-features": "{n:,} of {of:,} tasks have no features, such as {tasks:list}. Every "
    "task needs a row: add them, or leave out their responses.",
    "text-among-numbers": "{table}: features are numbers, or one column of text; text was found in "
    "{texts:list} of {n:,} columns. Choose the columns of one kind (feature_columns).",
    # Writing
    "counts-shape": "counts must be {expected}; got {shape}.",
    "label-studio-new-tasks": "Label Studio makes new tasks of these. To add predictions to the "
    "tasks that it has, give its JSON export as texts=.",
    "name-unwritable": "{file} cannot be written: {suffix} files are not made here. Name one that "
    "ends in .csv, .tsv, .jsonl or .parquet{hint}.",
    "no-known-labels": "{source} names no known label, so {file} is not written.",
    "no-task-labelled": "{file} has no task that has a label. Check the ids of both files.",
    "no-texts": "The file holds no texts of tasks, so {file} is not written.",
    "not-written": "{file} cannot be written: {reason}.",
    "stdout-closed": "Standard output is closed, so nothing can be written there. Use -o FILE.",
    "target-folder-missing": "{file} cannot be written: the folder {folder} does not exist.",
    "target-is-folder": "{folder} is a folder. Name a file in it to write to.",
    "tasks-left-out": "{n:count task} of the labels {n:verb are} not in {file}: left out.",
    "texts-format": "Texts are written as CSV or TSV; {file} is neither. Rename it.",
    "texts-of-other-tasks": "No text is of a task that has a label. Check the ids of both files.",
    "write-protected": "{file} is write-protected. Make it writable or choose another name.",
    # Folders of arrays, and their locks
    "array-folder-damaged": "{folder} is damaged or was not written to its end ({reason}). {cure}",
    "array-folder-foreign": "{folder} is a folder of something else. Choose another name.",
    "array-folder-is-file": "{path} is a file, not a folder of {what}. Choose another name.",
    "array-folder-missing": "There is no folder {folder}. {cure}",
    "array-folder-of-other-kind": "{folder} holds no {what}: its about.json says {found!r}.",
    "array-folder-version": "{folder} has version {version!r} of {what}, and this tiebreak reads "
    "up to version {known}. Use a newer tiebreak.",
    "in-use": "{target} is in use: {holder}. Try again later; update and stream wait for it with "
    "--wait SECONDS.",
    "no-locks": "{lock} cannot be locked ({reason}): make sure that nobody else writes {target} at "
    "the same time.",
    "not-locked": "{lock} cannot be locked: {reason}.",
}

register(worded(MESSAGES))
