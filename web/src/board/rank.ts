import type { Task } from "../api/types";

/** The rank between two neighbours of a column. */
export function rankBetween(column: readonly Task[], moved: number, before: number | null): number {
  const others = column.filter((task) => task.id !== moved);
  const at = before === null ? others.length : others.findIndex((task) => task.id === before);
  const above = others[at - 1]?.rank;
  const below = others[at]?.rank;
  if (above === undefined && below === undefined) return 1;
  if (above === undefined) return (below ?? 0) - 1;
  if (below === undefined) return above + 1;
  return (above + below) / 2;
}
