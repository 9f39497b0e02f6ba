import { useState } from "preact/hooks";
import { api } from "../api/client";
import type { Task } from "../api/types";
import { useAction, useLive } from "../hooks";
import { t } from "../i18n";
import { href } from "../router";
import { Button, Dialog, Field, Loading, State, Time } from "../ui/parts";
import { Markdown, oneLine, visible } from "../ui/text";

const STATES = ["triage", "todo", "scheduled", "ready", "running", "blocked", "review", "done", "archived"] as const;

export function columnName(column: string): string {
  return (STATES as readonly string[]).includes(column) ? t(`column_${column as (typeof STATES)[number]}`) : column;
}

export function NewTaskDialog({ board, onClose, onDone }: { board: string; onClose: () => void; onDone: () => void }) {
  const [title, setTitle] = useState("");
  const [body, setBody] = useState("");
  const [assignee, setAssignee] = useState("");
  const [isBusy, run] = useAction();
  return (
    <Dialog title={t("newTask")} onClose={onClose}>
      <form class="fields" onSubmit={(event) => { event.preventDefault(); void run(() => api.post("/api/kanban/tasks", { title: title.trim(), body, assignee: assignee.trim(), board })).then((done) => done && onDone()); }}>
        <Field label={t("taskTitle")}>{(id) => <input id={id} dir="auto" required maxLength={200} value={title} onInput={(event) => setTitle(event.currentTarget.value)} />}</Field>
        <Field label={t("taskBody")}>{(id) => <textarea id={id} class="tall" dir="auto" value={body} onInput={(event) => setBody(event.currentTarget.value)} />}</Field>
        <Field label={t("assignee")} help={t("assigneeHelp")}>{(id, help) => <input id={id} aria-describedby={help} value={assignee} onInput={(event) => setAssignee(event.currentTarget.value)} />}</Field>
        <div class="dialog-actions"><Button onClick={onClose}>{t("cancel")}</Button><Button kind="primary" type="submit" disabled={isBusy || !title.trim()}>{t("add")}</Button></div>
      </form>
    </Dialog>
  );
}

export function TaskDialog({ id, onClose }: { id: number; onClose: () => void }) {
  const task = useLive((signal) => api.get<Task>(`/api/kanban/tasks/${id}`, {}, signal), ["task"], [id]);
  return (
    <Dialog title={task.data ? `#${id} ${oneLine(task.data.title, 120)}` : `#${id}`} onClose={onClose} wide>
      <Loading of={task}>{(data) => <Details task={data} onChange={task.reload} />}</Loading>
    </Dialog>
  );
}

function Details({ task, onChange }: { task: Task; onChange: () => void }) {
  const [isBusy, run] = useAction();
  const [comment, setComment] = useState("");
  const [edited, setEdited] = useState<{ title: string; body: string } | null>(null);
  const change = (values: Record<string, unknown>) => run(() => api.patch(`/api/kanban/tasks/${task.id}`, values)).then((done) => { onChange(); return done; });
  return (
    <div class="stack">
      <div class="row">
        <label class="row">{t("moveTo")}
          <select class="select" value={task.state} disabled={isBusy} onChange={(event) => void change({ state: event.currentTarget.value })}>
            {STATES.map((one) => <option key={one} value={one}>{columnName(one)}</option>)}
          </select>
        </label>
        {task.assignee && <span class="chip">{visible(task.assignee)}</span>}
        {task.session_id && <a href={href("chat", { id: task.session_id })}>{t("openSession")}</a>}
        <span class="grow" />
        {!edited && <Button icon="edit" onClick={() => setEdited({ title: task.title, body: task.body })}>{t("edit")}</Button>}
      </div>
      {edited
        ? (
          <form class="fields" onSubmit={(event) => { event.preventDefault(); void change(edited).then((done) => done && setEdited(null)); }}>
            <Field label={t("taskTitle")}>{(id) => <input id={id} dir="auto" required maxLength={200} value={edited.title} onInput={(event) => setEdited({ ...edited, title: event.currentTarget.value })} />}</Field>
            <Field label={t("taskBody")}>{(id) => <textarea id={id} class="tall" dir="auto" value={edited.body} onInput={(event) => setEdited({ ...edited, body: event.currentTarget.value })} />}</Field>
            <div class="dialog-actions"><Button onClick={() => setEdited(null)}>{t("cancel")}</Button><Button kind="primary" type="submit" disabled={isBusy}>{t("save")}</Button></div>
          </form>
        )
        : task.body && <Markdown text={task.body} />}
      {task.reason && <p class="notice wait" dir="auto">{visible(task.reason)}</p>}
      {task.result && <section><h3>{t("result")}</h3><Markdown text={task.result} /></section>}
      <section>
        <h3>{t("comments")}</h3>
        <ul class="list">
          {(task.comments ?? []).map((one, index) => (
            <li key={index}><span class="faint">{oneLine(one.author ?? one.actor, 40)} <Time at={one.created_at} /></span><Markdown text={one.text ?? ""} /></li>
          ))}
        </ul>
        <form class="row" onSubmit={(event) => { event.preventDefault(); void run(() => api.post(`/api/kanban/tasks/${task.id}/comments`, { text: comment.trim() })).then((done) => { if (done) setComment(""); onChange(); }); }}>
          <input class="grow" dir="auto" aria-label={t("addComment")} placeholder={t("addComment")} value={comment} onInput={(event) => setComment(event.currentTarget.value)} />
          <Button type="submit" disabled={isBusy || !comment.trim()}>{t("add")}</Button>
        </form>
      </section>
      {(task.history?.length ?? 0) > 0 && (
        <details>
          <summary>{t("taskHistory")}</summary>
          <ul class="list">
            {[...(task.history ?? [])].reverse().map((one) => <li key={one.id} class="row"><Time at={one.created_at} /> <State name={one.kind} /> <span class="faint" dir="auto">{oneLine(one.actor, 40)} {oneLine(one.detail, 200)}</span></li>)}
          </ul>
        </details>
      )}
    </div>
  );
}
