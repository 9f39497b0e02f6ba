import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import type { Usage, UsageRow } from "../api/types";
import { useLive, useTitle } from "../hooks";
import { formatCost, formatCount, t } from "../i18n";
import { theme } from "../preferences";
import { Empty, Loading, PageHead, Tabs } from "../ui/parts";
import { oneLine } from "../ui/text";
import "uplot/dist/uPlot.min.css";

function Chart({ rows }: { rows: UsageRow[] }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = box.current;
    if (!place) return undefined;
    let isGone = false;
    let clean: () => void = () => undefined;
    void import("uplot").then(({ default: UPlot }) => {
      if (isGone) return;
      const style = getComputedStyle(document.documentElement);
      const color = (name: string) => style.getPropertyValue(name).trim();
      const axis = { stroke: color("--ink-3"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
      const bars = UPlot.paths.bars?.({ size: [0.7, 36] });
      const sums = rows.map((row) => row.tokens_in + row.tokens_out);
      const plot = new UPlot(
        {
          width: place.clientWidth, height: 240,
          scales: { y: { range: (_, __, max) => [0, Math.max(10, max * 1.1)] } },
          axes: [
            { ...axis, space: 64, values: (_, marks) => marks.map((mark) => new Date(mark * 1000).toLocaleDateString(document.documentElement.lang, { month: "short", day: "numeric", timeZone: "UTC" })) },
            { ...axis, size: 62, values: (_, marks) => marks.map((mark) => formatCount(mark)) },
          ],
          series: [
            { value: (_, at) => (at ? new Date(at * 1000).toLocaleDateString(document.documentElement.lang, { timeZone: "UTC" }) : ""), label: t("day") },
            { label: t("tokensIn"), paths: bars, fill: color("--accent"), stroke: color("--accent"), width: 0, points: { show: false }, value: (_, __, ___, at) => (at === null ? "" : formatCount(rows[at as number]?.tokens_in ?? 0)) },
            { label: t("tokensOut"), paths: bars, fill: color("--wait"), stroke: color("--wait"), width: 0, points: { show: false }, value: (_, value) => (value === null ? "" : formatCount(value)) },
          ],
        },
        // Input stands on output: the column is as high as both.
        [rows.map((row) => Date.parse(`${row.day}T00:00:00Z`) / 1000), sums, rows.map((row) => row.tokens_out)],
        place,
      );
      const resize = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: 240 }));
      resize.observe(place);
      clean = () => {
        resize.disconnect();
        plot.destroy();
      };
    });
    return () => {
      isGone = true;
      clean();
    };
  }, [rows, theme.value]);
  return <div class="chart" ref={box} role="img" aria-label={t("byDay")} />;
}

function Table({ title, rows, name }: { title: string; rows: UsageRow[]; name: (row: UsageRow) => string }) {
  return (
    <section aria-label={title}>
      <h2 class="section">{title}</h2>
      <div class="table-box">
        <table class="data">
          <thead><tr><th /><th class="num">{t("tokensIn")}</th><th class="num">{t("tokensOut")}</th><th class="num">{t("turns")}</th><th class="num">{t("cost")}</th></tr></thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}><td dir="auto">{oneLine(name(row), 80) || "–"}</td><td class="num">{formatCount(row.tokens_in)}</td><td class="num">{formatCount(row.tokens_out)}</td><td class="num">{formatCount(row.turns)}</td><td class="num">{formatCost(row.cost)}</td></tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

export default function UsagePage() {
  useTitle(t("page_usage"));
  const [days, setDays] = useState("30");
  const usage = useLive((signal) => api.get<Usage>("/api/usage", { days }, signal), [], [days]);
  return (
    <div class="page">
      <PageHead title={t("page_usage")} note={t("usageNote")}>
        <Tabs label={t("time")} value={days} options={["7", "30", "90"].map((n) => [n, t("lastDays", { n })] as const)} onChange={setDays} />
      </PageHead>
      <Loading of={usage}>
        {(data) => {
          const sum = (pick: (row: UsageRow) => number) => data.by_day.reduce((total, row) => total + pick(row), 0);
          if (!data.by_day.some((row) => row.turns || row.tokens_in || row.tokens_out)) return <Empty icon="usage" title={t("usageEmpty")}>{t("usageEmptyHint")}</Empty>;
          const hasCost = data.by_day.some((row) => row.cost !== null);
          return (
            <div class="stack">
              <dl class="figures">
                <div class="figure"><dt>{t("tokensIn")}</dt><dd>{formatCount(sum((row) => row.tokens_in))}</dd></div>
                <div class="figure"><dt>{t("tokensOut")}</dt><dd>{formatCount(sum((row) => row.tokens_out))}</dd></div>
                <div class="figure"><dt>{t("turns")}</dt><dd>{formatCount(sum((row) => row.turns))}</dd></div>
                <div class="figure"><dt>{t("cost")}</dt><dd>{hasCost ? formatCost(sum((row) => row.cost ?? 0)) : "–"}</dd></div>
              </dl>
              <section class="card" aria-label={t("byDay")}><h2>{t("byDay")}</h2><Chart rows={data.by_day} /></section>
              <Table title={t("byModel")} rows={data.by_model} name={(row) => row.model ?? ""} />
              <Table title={t("byPerson")} rows={data.by_person} name={(row) => row.person ?? ""} />
            </div>
          );
        }}
      </Loading>
    </div>
  );
}
