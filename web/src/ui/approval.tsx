/** A question of the agent, wherever it is shown. It knows its own id and reads itself, so that it is always true. */
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { Approval } from "../api/types";
import { useAction, useLive } from "../hooks";
import { formatTime, t } from "../i18n";
import { Icon } from "./icons";
import { Button, Loading, State, Time } from "./parts";
import { PlainText, visible } from "./text";

const SCOPES = ["once", "session", "always"] as const;

export function ApprovalCard({ id, showPlace = false, onAnswered }: { id: string; showPlace?: boolean; onAnswered?: () => void }) {
  const approval = useLive((signal) => api.get<Approval>(`/api/approvals/${encodeURIComponent(id)}`, {}, signal), ["approval"], [id]);
  return <Loading of={approval}>{(data) => <Card approval={data} showPlace={showPlace} onAnswered={() => { approval.reload(); onAnswered?.(); }} />}</Loading>;
}

function Card({ approval, showPlace, onAnswered }: { approval: Approval; showPlace: boolean; onAnswered: () => void }) {
  const [isBusy, run] = useAction();
  const [scope, setScope] = useState("once");
  const [reason, setReason] = useState("");
  useEffect(() => setScope("once"), [approval.id]);
  const isPending = approval.status === "pending";
  const scopes = SCOPES.filter((one) => one === "once" || (approval.scopes as string[] | undefined)?.includes(one));
  async function answer(decision: "approve" | "deny"): Promise<void> {
    const body: Record<string, string> = { decision };
    if (decision === "approve") body["scope"] = scope;
    if (reason.trim()) body["reason"] = reason.trim();
    if (approval.effect_sha256) body["effect_sha256"] = approval.effect_sha256;
    await run(() => api.post(`/api/approvals/${encodeURIComponent(approval.id)}`, body));
    onAnswered();
  }
  return (
    <section class={`approval ${isPending ? "" : "answered"}`} aria-label={t("approvalAsk")}>
      <header>
        <Icon name="approvals" />
        <strong>{t("approvalAsk")}</strong>
        {approval.tool && <code>{visible(approval.tool)}</code>}
        {!isPending && <State name={approval.status} />}
        <span class="grow" />
        <Time at={approval.created_at} />
      </header>
      <PlainText text={approval.question} mono />
      {approval.arguments && !approval.question.includes(approval.arguments) && (
        <details open={approval.is_long}>
          <summary>{t("tool_arguments")}</summary>
          <PlainText text={approval.arguments} mono />
        </details>
      )}
      {approval.touches_host && <p class="warn-line"><Icon name="warn" size={16} /> {t("approvalTouches")}{approval.is_long ? ` ${t("approvalLong")}` : ""}</p>}
      {showPlace && approval.session_key && <p class="faint">{t("askedBy", { place: visible(approval.session_key) })}</p>}
      {isPending && approval.may_answer && (
        <div class="approval-actions">
          <Button kind="primary" icon="check" disabled={isBusy} onClick={() => void answer("approve")}>{t("approve")}</Button>
          <Button kind="danger" icon="x" disabled={isBusy} onClick={() => void answer("deny")}>{t("deny")}</Button>
          {scopes.length > 1 && (
            <select class="select" aria-label={t("approvalScope")} value={scope} onChange={(event) => setScope(event.currentTarget.value)}>
              {scopes.map((one) => <option key={one} value={one}>{t(`approve_${one}`)}</option>)}
            </select>
          )}
          <input class="grow" aria-label={t("approvalReason")} placeholder={t("approvalReason")} maxLength={1000} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        </div>
      )}
      {isPending && !approval.may_answer && <p class="faint">{t("approvalNotYours")}</p>}
      {isPending && <p class="faint">{t("approvalExpires", { time: formatTime(approval.expires_at) })}</p>}
    </section>
  );
}
