-- The columns of a board in the order in which they are shown, so that a page of 10,000 tasks is read without sorting.
DROP INDEX tasks_columns;
CREATE INDEX tasks_columns ON tasks (board, state, priority DESC, rank, id);
