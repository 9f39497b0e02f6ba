import { useState } from "preact/hooks";
import { api } from "../api/client";
import type { Grant, List, Pairing, Person, SignInRow } from "../api/types";
import { useAction, useLive, useTitle } from "../hooks";
import { state, t } from "../i18n";
import { Age, Button, Confirm, Empty, Field, Dialog, Loading, PageHead, State, Time } from "../ui/parts";
import { oneLine, visible } from "../ui/text";
import { toast } from "../ui/toast";

const ROLES = ["owner", "admin", "user", "guest"] as const;

export default function People() {
  useTitle(t("page_people"));
  const people = useLive((signal) => api.get<List<Person>>("/api/people", { limit: 200 }, signal), ["pairing"], []);
  const pairings = useLive((signal) => api.get<List<Pairing>>("/api/pairings", {}, signal), ["pairing"], []);
  const [isBusy, run] = useAction();
  const [linking, setLinking] = useState<Person | null>(null);
  const reload = () => { people.reload(); pairings.reload(); };
  const decide = (one: Pairing, decision: "approve" | "refuse" | "revoke") =>
    void run(() => api.post("/api/pairings", { platform: one.platform, decision, ...(decision === "revoke" ? { user_id: one.user_id } : { code: one.code }) })).then(reload);
  const waiting = (pairings.data?.data ?? []).filter((one) => one.status === "pending");
  const approved = (pairings.data?.data ?? []).filter((one) => one.status !== "pending");
  return (
    <div class="page">
      <PageHead title={t("page_people")} note={t("peopleNote")} />
      <div class="stack">
        {waiting.length > 0 && (
          <section class="card attention" aria-label={t("pairingsWaiting")}>
            <h2>{t("pairingsWaiting")}</h2>
            <ul class="list">
              {waiting.map((one) => (
                <li key={`${one.platform}:${one.account}:${one.user_id}`} class="row">
                  <div class="grow"><strong dir="auto">{oneLine(one.name, 60) || visible(one.user_id)}</strong> <span class="faint">{visible(one.platform)} · {visible(one.user_id)} · <Age at={one.asked_at} /></span></div>
                  <code>{one.code}</code>
                  <Button kind="primary" disabled={isBusy} onClick={() => decide(one, "approve")}>{t("letIn")}</Button>
                  <Button disabled={isBusy} onClick={() => decide(one, "refuse")}>{t("sendAway")}</Button>
                </li>
              ))}
            </ul>
          </section>
        )}
        <Loading of={people}>
          {(page) => page.data.length === 0
            ? <Empty icon="people" title={t("peopleEmpty")}>{t("peopleEmptyHint")}</Empty>
            : (
              <div class="table-box">
                <table class="data flow">
                  <thead><tr><th>{t("person")}</th><th>{t("role")}</th><th>{t("accounts")}</th><th /></tr></thead>
                  <tbody>
                    {page.data.map((one) => (
                      <tr key={one.id}>
                        <td><strong dir="auto">{oneLine(one.name, 80) || visible(one.id)}</strong></td>
                        <td>
                          {one.may_change
                            ? (
                              <select
                                class="select" aria-label={`${t("role")}: ${oneLine(one.name, 40)}`} value={one.role} disabled={isBusy}
                                onChange={(event) => {
                                  const role = event.currentTarget.value;
                                  void run(() => api.patch(`/api/people/${encodeURIComponent(one.id)}`, { role })).then((done) => { if (done) toast(t("roleChanged")); people.reload(); });
                                }}
                              >
                                {ROLES.filter((role) => role !== "owner" || one.role === "owner").map((role) => <option key={role} value={role}>{t(`role_${role}`)}</option>)}
                              </select>
                            )
                            : <span class="chip">{(ROLES as readonly string[]).includes(one.role) ? t(`role_${one.role as "owner"}`) : one.role}</span>}
                        </td>
                        <td><div class="chips">{one.accounts.map((account) => <span key={`${account.platform}:${account.user_id}`} class="chip" title={oneLine(account.name, 80)}>{visible(account.platform)}:{visible(account.user_id)}</span>)}</div></td>
                        <td>{one.may_change && <Button kind="quiet" icon="link" onClick={() => setLinking(one)}>{t("linkAccount")}</Button>}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
        </Loading>
        <Grants />
        {approved.length > 0 && (
          <section class="card" aria-label={t("pairings")}>
            <h2>{t("pairings")}</h2>
            <ul class="list">
              {approved.map((one) => (
                <li key={`${one.platform}:${one.account}:${one.user_id}`} class="row">
                  <span class="grow" dir="auto">{oneLine(one.name, 60) || visible(one.user_id)} <span class="faint">{visible(one.platform)}</span></span>
                  <State name={one.status} /> <Time at={one.decided_at} />
                  {one.status === "approved" && <Confirm label={t("revoke")} disabled={isBusy} onConfirm={() => decide(one, "revoke")} />}
                </li>
              ))}
            </ul>
          </section>
        )}
        <SignIns />
      </div>
      {linking && <LinkDialog person={linking} onClose={() => setLinking(null)} onDone={() => { setLinking(null); reload(); }} />}
    </div>
  );
}

function Grants() {
  const grants = useLive((signal) => api.get<List<Grant>>("/api/grants", {}, signal), ["approval"], []);
  const [isBusy, run] = useAction();
  return (
    <section class="card" aria-label={t("grants")}>
      <div class="card-head"><h2>{t("grants")}</h2><span class="faint">{t("grantsNote")}</span></div>
      <Loading of={grants}>
        {(page) => page.data.length === 0
          ? <p class="faint">{t("grantsEmpty")}</p>
          : (
            <ul class="list">
              {page.data.map((one) => (
                <li key={one.id} class="row">
                  <code class="grow">{oneLine(one.subject, 200)}</code>
                  <span class="faint" dir="auto">{oneLine(one.person, 40)} · {one.scope === "always" ? t("scope_always") : one.scope === "session" ? t("scope_session") : state(one.scope)} · {t("grantedBy", { name: oneLine(one.granted_by, 40) })}</span>
                  <Time at={one.granted_at} />
                  <Confirm label={t("revoke")} disabled={isBusy} onConfirm={() => void run(() => api.remove(`/api/grants/${encodeURIComponent(one.id)}`)).then(grants.reload)} />
                </li>
              ))}
            </ul>
          )}
      </Loading>
    </section>
  );
}

function SignIns() {
  const rows = useLive((signal) => api.get<List<SignInRow>>("/api/dashboard/sign-ins", {}, signal), [], []);
  const [isBusy, run] = useAction();
  return (
    <section class="card" aria-label={t("signIns")}>
      <h2>{t("signIns")}</h2>
      <Loading of={rows}>
        {(page) => (
          <ul class="list">
            {page.data.map((one) => (
              <li key={one.id} class="row">
                <span class="grow" dir="auto"><strong>{oneLine(one.name, 40)}</strong> {one.is_this && <span class="chip">{t("thisBrowser")}</span>} <span class="faint">{oneLine(one.agent, 80)} · {visible(one.address)}</span></span>
                <span class="faint">{t("lastSeen")} <Age at={one.seen_at} /></span>
                {!one.is_this && <Confirm label={t("signOut")} disabled={isBusy} onConfirm={() => void run(() => api.remove(`/api/dashboard/sign-ins/${encodeURIComponent(one.id)}`)).then(rows.reload)} />}
              </li>
            ))}
          </ul>
        )}
      </Loading>
    </section>
  );
}

function LinkDialog({ person, onClose, onDone }: { person: Person; onClose: () => void; onDone: () => void }) {
  const [account, setAccount] = useState("");
  const [isBusy, run] = useAction();
  return (
    <Dialog title={`${t("linkAccount")}: ${oneLine(person.name, 40)}`} onClose={onClose}>
      <form onSubmit={(event) => { event.preventDefault(); void run(() => api.post(`/api/people/${encodeURIComponent(person.id)}/links`, { account: account.trim() })).then((done) => done && onDone()); }}>
        <Field label={t("accounts")} help={t("linkAccountHelp")}>{(id, help) => <input id={id} aria-describedby={help} value={account} onInput={(event) => setAccount(event.currentTarget.value)} />}</Field>
        <div class="dialog-actions"><Button onClick={onClose}>{t("cancel")}</Button><Button kind="primary" type="submit" disabled={isBusy || !account.includes(":")}>{t("linkAccount")}</Button></div>
      </form>
    </Dialog>
  );
}
