import { useState } from "preact/hooks";
import { api } from "../api/client";
import type { Job, JobSlot, List } from "../api/types";
import { useAction, useLive, useTitle } from "../hooks";
import { t } from "../i18n";
import { href } from "../router";
import { Button, Confirm, Dialog, Empty, Field, Loading, PageHead, State, Time } from "../ui/parts";
import { oneLine, visible } from "../ui/text";
import { toast } from "../ui/toast";

export default function Jobs() {
  useTitle(t("page_jobs"));
  const jobs = useLive((signal) => api.get<List<Job>>("/api/jobs", {}, signal), ["job"], []);
  const [editing, setEditing] = useState<Job | "new" | null>(null);
  const [looking, setLooking] = useState<Job | null>(null);
  const [isBusy, run] = useAction();
  const act = (job: Job, what: "run" | "pause" | "resume", word?: string) =>
    void run(() => api.post(`/api/jobs/${encodeURIComponent(job.id)}/${what}`)).then((done) => { if (done && word) toast(word); jobs.reload(); });
  return (
    <div class="page">
      <PageHead title={t("page_jobs")} note={t("jobsNote")}><Button kind="primary" icon="plus" onClick={() => setEditing("new")}>{t("newJob")}</Button></PageHead>
      <Loading of={jobs}>
        {(page) => page.data.length === 0
          ? <Empty icon="jobs" title={t("jobsEmpty")}><p>{t("jobsEmptyHint")}</p><Button kind="primary" icon="plus" onClick={() => setEditing("new")}>{t("newJob")}</Button></Empty>
          : (
            <ul class="stack">
              {page.data.map((job) => (
                <li key={job.id} class="card job" data-job={job.id}>
                  <div class="card-head">
                    <h2 dir="auto">{oneLine(job.name || job.prompt, 90)}</h2>
                    <State name={job.state} />
                  </div>
                  <p class="row faint"><span class="chip">{visible(job.schedule)}</span> <span>{t("nextRun")}: <Time at={job.next_run_at} /></span> <span>→ {visible(job.deliver)}</span></p>
                  <p class="clip" dir="auto">{oneLine(job.prompt || job.script, 300)}</p>
                  {job.reason && <p class="bad-text" dir="auto">{oneLine(job.reason, 300)}</p>}
                  <div class="row actions">
                    <Button icon="play" disabled={isBusy} onClick={() => act(job, "run", t("runStarted"))}>{t("runNow")}</Button>
                    <Button icon="edit" onClick={() => setEditing(job)}>{t("edit")}</Button>
                    {job.state === "paused"
                      ? <Button icon="play" disabled={isBusy} onClick={() => act(job, "resume")}>{t("resume")}</Button>
                      : job.state === "active" && <Button icon="pause" disabled={isBusy} onClick={() => act(job, "pause")}>{t("pause")}</Button>}
                    <Button kind="quiet" icon="logs" onClick={() => setLooking(job)}>{t("history")}</Button>
                    <span class="grow" />
                    <Confirm label={t("delete")} icon="trash" disabled={isBusy} onConfirm={() => void run(() => api.remove(`/api/jobs/${encodeURIComponent(job.id)}`)).then(jobs.reload)} />
                  </div>
                </li>
              ))}
            </ul>
          )}
      </Loading>
      {editing && <JobDialog job={editing === "new" ? null : editing} onClose={() => setEditing(null)} onDone={() => { setEditing(null); jobs.reload(); }} />}
      {looking && <HistoryDialog job={looking} onClose={() => setLooking(null)} />}
    </div>
  );
}

function JobDialog({ job, onClose, onDone }: { job: Job | null; onClose: () => void; onDone: () => void }) {
  const [form, setForm] = useState({ name: job?.name ?? "", schedule: job?.schedule ?? "", prompt: job?.prompt ?? "", deliver: job?.deliver ?? "local", timezone: job?.timezone ?? "" });
  const [isBusy, run] = useAction();
  const put = (name: keyof typeof form) => (event: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) => setForm({ ...form, [name]: event.currentTarget.value });
  async function save(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const before: Record<string, unknown> = job ?? {};
    const changed = Object.fromEntries(Object.entries(form).filter(([name, value]) => (job ? value !== (before[name] ?? "") : value !== "")));
    if (job && !Object.keys(changed).length) return onClose();
    if (await run(() => (job ? api.patch(`/api/jobs/${encodeURIComponent(job.id)}`, changed) : api.post("/api/jobs", changed)))) {
      toast(t("saved"));
      onDone();
    }
    return undefined;
  }
  return (
    <Dialog title={t(job ? "editJob" : "newJob")} onClose={onClose} wide>
      <form class="fields" onSubmit={(event) => void save(event)}>
        <Field label={t("prompt")}>{(id) => <textarea id={id} class="tall" dir="auto" required={!job?.script} maxLength={20000} value={form.prompt} onInput={put("prompt")} />}</Field>
        <div class="fields two">
          <Field label={t("schedule")} help={t("scheduleHelp")}>{(id, help) => <input id={id} aria-describedby={help} required value={form.schedule} onInput={put("schedule")} />}</Field>
          <Field label={t("deliverTo")} help={t("deliverHelp")}>{(id, help) => <input id={id} aria-describedby={help} value={form.deliver} onInput={put("deliver")} />}</Field>
          <Field label={t("jobName")}>{(id) => <input id={id} dir="auto" maxLength={256} value={form.name} onInput={put("name")} />}</Field>
          <Field label={t("timezone")}>{(id) => <input id={id} placeholder={Intl.DateTimeFormat().resolvedOptions().timeZone} value={form.timezone} onInput={put("timezone")} />}</Field>
        </div>
        <div class="dialog-actions"><Button onClick={onClose}>{t("cancel")}</Button><Button kind="primary" type="submit" disabled={isBusy}>{t("save")}</Button></div>
      </form>
    </Dialog>
  );
}

function HistoryDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const slots = useLive((signal) => api.get<List<JobSlot>>(`/api/jobs/${encodeURIComponent(job.id)}/history`, {}, signal), ["job", "turn"], [job.id]);
  return (
    <Dialog title={`${t("history")}: ${oneLine(job.name || job.prompt, 60)}`} onClose={onClose} wide>
      <Loading of={slots}>
        {(page) => page.data.length === 0
          ? <p class="faint">{t("historyEmpty")}</p>
          : (
            <ul class="list">
              {page.data.map((slot, index) => (
                <li key={index} class="row">
                  <Time at={slot.slot} /> <State name={slot.state} /> <span dir="auto" class="grow">{oneLine(slot.error || slot.reason || slot.outcome, 200)}</span>
                  {slot.delivery && <span class="faint">{oneLine(slot.delivery, 60)}</span>}
                  {slot.event_id && <a href={href("messages", { id: slot.event_id })}>{t("openTrace")}</a>}
                </li>
              ))}
            </ul>
          )}
      </Loading>
    </Dialog>
  );
}
