import { api } from "../api/client";
import type { NodeState, Overview, PlatformState } from "../api/types";
import { useLive, useTick, useTitle } from "../hooks";
import { formatAge, formatCost, formatCount, formatDuration, language, t } from "../i18n";
import { href } from "../router";
import { Icon } from "../ui/icons";
import { Age, Loading, PageHead, State } from "../ui/parts";
import { oneLine, visible } from "../ui/text";

function Figure({ name, value, note, to }: { name: string; value: string; note?: string; to?: string }) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>{to ? <a href={to}>{value}</a> : value}{note && <small>{note}</small>}</dd>
    </div>
  );
}

export function PlatformTable({ platforms, loadedAt }: { platforms: PlatformState[]; loadedAt: number }) {
  useTick(5000);
  const since = (Date.now() - loadedAt) / 1000;
  return (
    <div class="table-box">
      <table class="data">
        <thead><tr><th>{t("page_platforms")}</th><th>{t("lastFrame")}</th><th class="num">{t("inToday")}</th><th class="num">{t("outToday")}</th></tr></thead>
        <tbody>
          {platforms.map((one) => (
            <tr key={one.name}>
              <td>
                <div class="row"><strong>{visible(one.name)}</strong> <State name={one.is_paused ? "paused" : one.state} /></div>
                {one.state !== "connected" && one.sentence && <div class="faint" dir="auto">{visible(one.sentence)}</div>}
                {one.cure && <div dir="auto">{visible(one.cure)}</div>}
              </td>
              <td class="time">{one.last_frame_age === null ? t("never") : formatAge(one.last_frame_age + since)}</td>
              <td class="num">{formatCount(one.in_today ?? 0)}</td>
              <td class="num">{formatCount(one.out_today ?? 0)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Nodes({ nodes }: { nodes: NodeState[] }) {
  return (
    <div class="table-box">
      <table class="data">
        <thead><tr><th>{t("nodes")}</th><th>{t("host")}</th><th>{t("version")}</th><th class="num">{t("lanes")}</th></tr></thead>
        <tbody>
          {nodes.map((one) => (
            <tr key={one.name} data-node={one.name}>
              <td><div class="row"><strong>{visible(one.name)}</strong> <State name={one.state} /> {one.is_this && <span class="chip">{t("thisNode")}</span>}</div></td>
              <td>{visible(one.host ?? "")}</td>
              <td>{one.version}</td>
              <td class="num">{one.lanes ?? ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export default function OverviewPage() {
  useTitle(t("page_overview"));
  const seen = useLive(
    async (signal) => ({ ...(await api.get<Overview>("/api/overview", { language: language.value }, signal)), loadedAt: Date.now() }),
    ["message", "turn", "approval", "platform", "node", "alert"], [language.value],
  );
  return (
    <div class="page">
      <PageHead title={t("page_overview")} />
      <Loading of={seen}>
        {(now) => {
          const tokens = typeof now.tokens_today === "number" ? { in: now.tokens_today, out: 0 } : (now.tokens_today ?? { in: 0, out: 0 });
          return (
            <div class="stack">
              <div class={`sentence ${now.is_well ? "good" : "wait"}`} role="status">
                <Icon name={now.is_well ? "check" : "warn"} size={22} />
                <div>
                  <p dir="auto">{visible(now.sentence)}</p>
                  <small>
                    {now.remote ? <span>{visible(now.remote.sentence)} · {visible(now.remote.url)} · </span> : null}
                    {t("version")} {now.version}{now.started_at ? <> · {t("startedAt")} <Age at={now.started_at} /></> : null}
                    {now.model?.label && <> · {t("modelLine")} {visible(now.model.label)}</>}
                  </small>
                </div>
              </div>
              {now.alerts.length > 0 && (
                <section aria-label={t("alerts")}>
                  {now.alerts.map((text, index) => <div key={index} class="notice wait"><Icon name="warn" /><span dir="auto">{oneLine(text, 500)}</span></div>)}
                </section>
              )}
              <dl class="figures">
                <Figure name={t("inToday")} value={formatCount(now.messages.in_today)} to={href("messages")} />
                <Figure name={t("outToday")} value={formatCount(now.messages.out_today)} />
                <Figure
                  name={t("waitingNow")} value={formatCount(now.messages.waiting)}
                  note={now.messages.oldest_age ? t("oldest", { time: formatDuration(now.messages.oldest_age) }) : undefined}
                />
                <Figure
                  name={t("latency")} value={now.latency.p50 === null ? "–" : formatDuration(now.latency.p50)}
                  note={now.latency.p95 === null ? t("noAnswerYet") : t("latencyNote", { time: formatDuration(now.latency.p95) })}
                />
                <Figure name={t("tokensToday")} value={formatCount(tokens.in + tokens.out)} note={t("tokensInOut", { in: formatCount(tokens.in), out: formatCount(tokens.out) })} to={href("usage")} />
                <Figure name={t("costToday")} value={formatCost(now.cost_today)} />
                <Figure name={t("approvalsWaiting")} value={formatCount(now.approvals_waiting)} to={href("approvals")} />
                <Figure name={t("deadLetters")} value={formatCount(now.dead_letters)} to={href("messages", { state: "dead" })} />
              </dl>
              {now.platforms.length > 0
                ? <PlatformTable platforms={now.platforms} loadedAt={now.loadedAt} />
                : <div class="card row"><span class="grow">{t("noPlatforms")}</span><a class="button primary" href={href("platforms")}>{t("setUpPlatform")}</a></div>}
              {now.nodes.length > 0 && <Nodes nodes={now.nodes} />}
            </div>
          );
        }}
      </Loading>
    </div>
  );
}
