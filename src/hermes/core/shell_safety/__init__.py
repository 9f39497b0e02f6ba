"""Judge shell commands and code: run them, ask first, or refuse them.

The idea: to change something outside of the workspace, a command must name that place, compute a word, or run code. So
a program that is not known to only read asks when one of its words does that. Programs that are known to be dangerous
ask by name. A text that the parser does not understand asks.

Read the modules in this order:

1. ``judge``: the entry, and the verdict. ``classes``: the kinds of danger.
2. ``tree``: the syntax tree of a text, and when it is trusted. ``words``: the words a program receives.
   ``paths``: paths by their text.
3. ``walk``: commands in order, with folders, variables, pipes and redirections. ``flow``: what passes between them.
4. ``command``: choose the rules for one command. ``simple_command``: the rules for every program. By subject:
   ``shell_builtins``, ``runners``, ``interpreters``, ``file_programs``, ``network_programs``, ``git``.
5. ``findings``: what was found so far. ``hard_list``: the commands that are refused to everybody. ``judging``: texts,
   scripts and code, one inside the other. ``python_code`` and ``code``: code for interpreters.
6. The tables: ``reading`` (programs that only read), ``dangerous`` (programs that ask), ``running`` (programs that run
   others), ``places`` (files that need a question).
"""
