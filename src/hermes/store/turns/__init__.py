"""Store turns: lanes, begin, steps, tool calls, end, retry."""
