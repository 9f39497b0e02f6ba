/** The small parts every page is made of. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { formatAge, formatFullTime, formatTime, state, t } from "../i18n";
import { useTick } from "../hooks";
import { Icon, type IconName } from "./icons";

export function Button(
  { kind = "plain", icon, children, ...rest }:
    { kind?: "plain" | "primary" | "danger" | "quiet"; icon?: IconName; children?: ComponentChildren } & JSX.IntrinsicElements["button"],
) {
  return (
    <button type="button" {...rest} class={`button ${kind} ${rest.class ?? ""}`}>
      {icon && <Icon name={icon} size={16} />}
      {children && <span>{children}</span>}
    </button>
  );
}

export function IconButton({ icon, label, ...rest }: { icon: IconName; label: string } & JSX.IntrinsicElements["button"]) {
  return (
    <button type="button" {...rest} class={`icon-button ${rest.class ?? ""}`} aria-label={label} title={label}>
      <Icon name={icon} />
    </button>
  );
}

const TONES: Record<string, string> = {
  connected: "good", running: "good", active: "good", ok: "good", done: "good", delivered: "good", sent: "good", approved: "good", alive: "good", living: "good",
  completed: "good", allowed: "good", answered: "good", ready: "good", ran: "good",
  waiting: "wait", taken: "wait", proposed: "wait", started: "wait", elsewhere: "wait", cancelled: "wait", expired: "wait", pending: "wait", queued: "wait", connecting: "wait", starting: "wait", retrying: "wait", late: "wait", paused: "wait", review: "wait",
  scheduled: "wait", reconnecting: "wait", draining: "wait", left: "wait", degraded: "wait", stale: "wait", sending: "wait", waiting_approval: "wait",
  failed: "bad", dead: "bad", refused: "bad", error: "bad", stopped: "bad", disconnected: "bad", blocked: "bad", missed: "bad", denied: "bad",
  gone: "bad", rejected: "bad", broken: "bad", silent: "bad", lost: "bad", down: "bad",
};

export function toneOf(name: string): string {
  return TONES[name.toLowerCase()] ?? "";
}

export function State({ name }: { name: string | null | undefined }) {
  if (!name) return null;
  return <span class={`state ${toneOf(name)}`}>{state(name)}</span>;
}

/** Writing a whole date takes a browser long, and a page shows hundreds of times: it is written for whoever points at one. */
function showFullTime(event: JSX.TargetedPointerEvent<HTMLTimeElement>): void {
  event.currentTarget.title = formatFullTime(Date.parse(event.currentTarget.dateTime) / 1000);
}

export function Time({ at }: { at: number | null | undefined }) {
  if (!at) return <span class="faint">–</span>;
  return (
    <time class="time" dateTime={new Date(at * 1000).toISOString()} onPointerEnter={showFullTime}>
      {formatTime(at)}
    </time>
  );
}

export function Age({ at }: { at: number | null | undefined }) {
  useTick(10_000);
  if (!at) return <span class="faint">–</span>;
  return <time class="time" dateTime={new Date(at * 1000).toISOString()} onPointerEnter={showFullTime}>{formatAge(Date.now() / 1000 - at)}</time>;
}

export function PageHead({ title, note, children }: { title: string; note?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <header class="page-head">
      <div class="page-title">
        <h1>{title}</h1>
        {note && <p>{note}</p>}
      </div>
      {children && <div class="page-tools">{children}</div>}
    </header>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} size={30} />
      <h2>{title}</h2>
      {children && <div>{children}</div>}
    </div>
  );
}

/** Loading, failed, or the data. What was shown stays while it is loaded again. */
export function Loading<T>(
  { of, children }: { of: { data: T | undefined; error: Error | undefined; reload: () => void }; children: (data: T) => ComponentChildren },
) {
  if (of.data !== undefined) {
    return (
      <>
        {of.error && <Failure error={of.error} onRetry={of.reload} />}
        {children(of.data)}
      </>
    );
  }
  if (of.error) return <Failure error={of.error} onRetry={of.reload} />;
  return <div class="loading" role="status"><span class="spinner" /> <span>{t("loading")}</span></div>;
}

export function Failure({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const text = error instanceof ApiError ? error.message : t("noConnection");
  return (
    <div class="notice bad" role="alert">
      <Icon name="warn" />
      <span dir="auto">{text}</span>
      {onRetry && <Button icon="retry" onClick={onRetry}>{t("tryAgain")}</Button>}
    </div>
  );
}

export function Search({ value, onInput, label }: { value: string; onInput: (value: string) => void; label: string }) {
  return (
    <label class="search">
      <Icon name="search" size={16} />
      <input type="search" value={value} placeholder={label} aria-label={label} onInput={(event) => onInput(event.currentTarget.value)} />
    </label>
  );
}

export function Choice<T extends string>(
  { value, options, onChange, label }: { value: T; options: readonly (readonly [T, string])[]; onChange: (value: T) => void; label: string },
) {
  return (
    <select class="select" aria-label={label} value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
      {options.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
    </select>
  );
}

export function Tabs<T extends string>(
  { value, options, onChange, label }: { value: T; options: readonly (readonly [T, string])[]; onChange: (value: T) => void; label: string },
) {
  return (
    <div class="tabs" role="group" aria-label={label}>
      {options.map(([name, text]) => (
        <button key={name} type="button" aria-pressed={name === value} onClick={() => onChange(name)}>{text}</button>
      ))}
    </div>
  );
}

export function Field({ label, help, children }: { label: string; help?: string; children: (id: string, helpId: string | undefined) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id, help ? `${id}-help` : undefined)}
      {help && <small id={`${id}-help`} dir="auto">{help}</small>}
    </div>
  );
}

/** A modal window by the browser's own dialog: focus stays inside, Escape closes it. */
export function Dialog(
  { title, onClose, children, wide = false }: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean },
) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = box.current;
    const before = document.activeElement as HTMLElement | null;
    element?.showModal();
    return () => {
      element?.close();
      before?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={wide ? "wide" : ""}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => event.target === box.current && onClose()}
    >
      <div class="dialog-body">
        <header>
          <h2 id={id} dir="auto">{title}</h2>
          <IconButton icon="x" label={t("close")} onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** A button that asks once more, in its own place. */
export function Confirm({ label, icon, onConfirm, disabled }: { label: string; icon?: IconName; onConfirm: () => void; disabled?: boolean }) {
  const [isAsking, setAsking] = useState(false);
  useEffect(() => {
    if (!isAsking) return undefined;
    const timer = setTimeout(() => setAsking(false), 5000);
    return () => clearTimeout(timer);
  }, [isAsking]);
  return isAsking
    ? <Button kind="danger" onClick={() => { setAsking(false); onConfirm(); }}>{t("sure", { what: label })}</Button>
    : <Button kind="quiet" icon={icon} disabled={disabled} onClick={() => setAsking(true)}>{label}</Button>;
}

export function More({ show, onMore }: { show: boolean; onMore: () => void }) {
  return show ? <div class="more"><Button onClick={onMore}>{t("showMore")}</Button></div> : null;
}
