import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { List, Task } from "../api/types";
import { useDrag, type Place } from "../board/drag";
import { rankBetween } from "../board/rank";
import { columnName, TaskDialog, NewTaskDialog } from "../board/task";
import { useLive, useTitle } from "../hooks";
import { formatCount, t } from "../i18n";
import { go, route } from "../router";
import { Button, Choice, Empty, Loading, PageHead } from "../ui/parts";
import { oneLine, visible } from "../ui/text";
import { toast } from "../ui/toast";

export const COLUMNS = ["triage", "todo", "scheduled", "ready", "running", "blocked", "review", "done"] as const;
const PER_COLUMN = 50;
const ARROWS: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

interface Columns {
  tasks: Record<string, Task[]>;
  counts: Record<string, number>;
  boards: string[];
}

async function load(board: string, signal: AbortSignal): Promise<Columns> {
  const [{ counts }, ...pages] = await Promise.all([
    api.get<{ counts: Record<string, unknown> }>("/api/kanban/stats", {}, signal),
    ...COLUMNS.map((column) => api.get<List<Task>>("/api/kanban/tasks", { board, state: column, limit: PER_COLUMN }, signal)),
  ]);
  // Counts come by board, or by column where there is one board.
  const isByBoard = Object.values(counts).every((one) => typeof one === "object" && one !== null);
  const ofBoard = (isByBoard ? (counts[board] ?? {}) : counts) as Record<string, number>;
  return {
    tasks: Object.fromEntries(COLUMNS.map((column, index) => [column, pages[index]?.data ?? []])),
    counts: ofBoard,
    boards: isByBoard ? Object.keys(counts) : [],
  };
}

export default function Board() {
  useTitle(t("page_board"));
  const query = route.value.query;
  const board = query.get("board") ?? "main";
  const open = query.get("task");
  const columns = useLive((signal) => load(board, signal), ["task"], [board]);
  const [isAdding, setAdding] = useState(false);
  const [focused, setFocused] = useState<number | null>(null);
  const [said, setSaid] = useState("");
  const { dragging, start } = useDrag((id, place) => void move(id, place));

  useEffect(() => {
    if (focused !== null) document.querySelector<HTMLElement>(`[data-card="${focused}"]`)?.focus();
  }, [columns.data]);

  function find(id: number): Task | undefined {
    return Object.values(columns.data?.tasks ?? {}).flat().find((task) => task.id === id);
  }

  async function move(id: number, place: Place): Promise<void> {
    const now = columns.data;
    const task = find(id);
    if (!now || !task) return;
    const rank = rankBetween(now.tasks[place.column] ?? [], id, place.before);
    const moved = { ...task, state: place.column as Task["state"], rank };
    // Shown at once, and put right by what the gateway says.
    const tasks = Object.fromEntries(Object.entries(now.tasks).map(([name, list]) => {
      const rest = list.filter((one) => one.id !== id);
      if (name !== place.column) return [name, rest];
      const at = place.before === null ? rest.length : rest.findIndex((one) => one.id === place.before);
      return [name, [...rest.slice(0, at), moved, ...rest.slice(at)]];
    }));
    columns.set({ ...now, tasks });
    try {
      const change: Record<string, unknown> = { rank };
      if (task.state !== place.column) change["state"] = place.column;
      await api.patch(`/api/kanban/tasks/${id}`, change);
      setSaid(t("moved", { id, column: columnName(place.column) }));
    } catch (error) {
      toast((error as Error).message, "error");
    }
    columns.reload();
  }

  function onKey(event: KeyboardEvent, task: Task): void {
    if (event.key === "Enter" && event.target === event.currentTarget) {
      event.preventDefault();
      go("board", { ...(board === "main" ? {} : { board }), task: String(task.id) });
      return;
    }
    const step = ARROWS[event.key];
    if (!step) return;
    const [across, down] = step;
    const at = COLUMNS.indexOf(task.state as (typeof COLUMNS)[number]);
    const list = columns.data?.tasks[task.state] ?? [];
    const row = list.findIndex((one) => one.id === task.id);
    event.preventDefault();
    if (!event.altKey) {
      // Without Alt the focus moves, to the nearest column that has cards.
      let next = list[row + down];
      for (let column = at + across; across && column >= 0 && column < COLUMNS.length && (!next || next.id === task.id); column += across) {
        const there = columns.data?.tasks[COLUMNS[column]!] ?? [];
        next = there[Math.min(row, there.length - 1)];
      }
      if (next) document.querySelector<HTMLElement>(`[data-card="${next.id}"]`)?.focus();
      return;
    }
    setFocused(task.id);
    if (across) {
      const column = COLUMNS[at + across];
      if (column) void move(task.id, { column, before: columns.data?.tasks[column]?.[0]?.id ?? null });
    } else {
      const before = down < 0 ? list[row - 1] : list[row + 2];
      if (down < 0 ? row > 0 : row < list.length - 1) void move(task.id, { column: task.state, before: before?.id ?? null });
    }
  }

  return (
    <div class="board-page">
      <div class="page board-head">
        <PageHead title={t("page_board")} note={t("boardNote")}>
          {(columns.data?.boards.length ?? 0) > 1 && (
            <Choice label={t("board")} value={board} options={(columns.data?.boards ?? []).map((name) => [name, name] as const)} onChange={(name) => go("board", { board: name })} />
          )}
          <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>{t("newTask")}</Button>
        </PageHead>
        <p class="sr" role="status" aria-live="polite">{said}</p>
      </div>
      <Loading of={columns}>
        {(data) => Object.values(data.tasks).every((list) => list.length === 0)
          ? <Empty icon="board" title={t("boardEmpty")}><p>{t("boardEmptyHint")}</p><Button kind="primary" icon="plus" onClick={() => setAdding(true)}>{t("newTask")}</Button></Empty>
          : (
            <div class="board" tabIndex={-1}>
              {COLUMNS.map((column) => {
                const list = data.tasks[column] ?? [];
                const count = Math.max(data.counts[column] ?? 0, list.length);
                const isTarget = dragging?.place?.column === column;
                return (
                  <section key={column} class={`column ${isTarget ? "target" : ""} ${list.length ? "" : "is-empty"}`} data-column={column} aria-label={`${columnName(column)}, ${count}`}>
                    <h2>{columnName(column)} <span class="faint">{formatCount(count)}</span></h2>
                    <div class="cards">
                      {list.map((task) => (
                        <div
                          key={task.id} class={`task ${dragging?.id === task.id ? "lifted" : ""} ${isTarget && dragging?.place?.before === task.id ? "before" : ""}`}
                          data-card={task.id} tabIndex={0} role="group" aria-roledescription={t("taskTitle")} aria-label={`#${task.id} ${oneLine(task.title, 100)}`}
                          onPointerDown={(event) => start(event, task.id)} onKeyDown={(event) => onKey(event, task)}
                          onDblClick={() => go("board", { ...(board === "main" ? {} : { board }), task: String(task.id) })}
                        >
                          <button class="task-title" dir="auto" onClick={() => go("board", { ...(board === "main" ? {} : { board }), task: String(task.id) })}>{oneLine(task.title, 140)}</button>
                          <div class="row task-meta">
                            <span class="faint">#{task.id}</span>
                            {task.assignee && <span class="chip">{visible(task.assignee)}</span>}
                            {task.priority > 0 && <span class="chip">{t("priority")} {task.priority}</span>}
                          </div>
                          {task.reason && <p class="faint clip" dir="auto">{oneLine(task.reason, 140)}</p>}
                        </div>
                      ))}
                    </div>
                    {count > list.length && <p class="faint pad">{t("moreTasks", { n: formatCount(count - list.length) })}</p>}
                  </section>
                );
              })}
            </div>
          )}
      </Loading>
      {isAdding && <NewTaskDialog board={board} onClose={() => setAdding(false)} onDone={() => { setAdding(false); columns.reload(); }} />}
      {open && <TaskDialog id={Number(open)} onClose={() => go("board", board === "main" ? {} : { board })} />}
    </div>
  );
}
