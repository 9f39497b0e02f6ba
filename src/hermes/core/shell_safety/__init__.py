"""Judge shell commands and code: which only read, which ask first, which are refused to everybody.

``judge.judge`` and ``judge.judge_code`` are the face of this package. The rest by subject: ``tree`` (the syntax tree),
``words`` (what a word becomes), ``reading`` (programs that only read), ``dangerous`` (the table of dangers),
``running`` (programs that run others), ``places`` (files that need a question), ``code`` (code for interpreters).
"""
