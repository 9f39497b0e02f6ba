"""The sentences of the command line in Chinese, by their English form; ``{}`` stands for what is filled in.

Imported only where a sentence is printed in Chinese.
"""
