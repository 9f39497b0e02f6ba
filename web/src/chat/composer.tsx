import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { warmUp } from "../ui/formatting";
import { IconButton, Button } from "../ui/parts";
import { toast } from "../ui/toast";
import { keepDraft, readDraft } from "./drafts";
import { picturesOf, readPicture } from "./pictures";

export interface Draft {
  text: string;
  pictures: string[];
}
export type How = "send" | "steer" | "queue";

const MOST_PICTURES = 8;

/** Where one writes. `isRunning`: what is written now steers the turn or waits behind it. */
export function Composer(
  { isRunning, onSend, onStop, draftKey, dropped, restored }:
    { isRunning: boolean; onSend: (draft: Draft, how: How) => Promise<boolean>; onStop: () => void; draftKey: string; dropped: File[]; restored: Draft | null },
) {
  const [text, setText] = useState(() => readDraft(draftKey));
  const [pictures, setPictures] = useState<string[]>([]);
  const [isSending, setSending] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);

  useEffect(() => {
    setText(readDraft(draftKey));
    setPictures([]);
    if (matchMedia("(pointer: fine)").matches) area.current?.focus();
  }, [draftKey]);
  useEffect(() => {
    const element = area.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight + 2, 260)}px`;
  }, [text]);
  const write = useCallback((value: string) => {
    setText(value);
    keepDraft(draftKey, value);
    warmUp(); // the answer is near
  }, [draftKey]);
  useEffect(() => void addPictures(dropped), [dropped]);
  useEffect(() => {
    if (!restored) return;
    setText((now) => now || restored.text);
    setPictures((now) => (now.length ? now : restored.pictures));
  }, [restored]);

  async function addPictures(files: File[]): Promise<void> {
    for (const file of files.slice(0, MOST_PICTURES)) {
      try {
        const url = await readPicture(file);
        setPictures((before) => [...before, url].slice(0, MOST_PICTURES));
      } catch {
        toast(t("pictureTooLarge", { name: file.name }), "error");
      }
    }
  }

  async function submit(how: How): Promise<void> {
    const draft = { text: text.trim(), pictures };
    if ((!draft.text && !draft.pictures.length) || isSending) return;
    setSending(true);
    write("");
    setPictures([]);
    const isTaken = await onSend(draft, how);
    if (!isTaken) {
      setText((now) => now || draft.text); // nothing that was written is lost
      setPictures((now) => (now.length ? now : draft.pictures));
    }
    setSending(false);
    area.current?.focus();
  }

  function onKey(event: KeyboardEvent): void {
    if (event.key === "Escape" && isRunning) {
      event.preventDefault();
      onStop();
    }
    // An input method uses Enter to choose a word: that one is not for us.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    void submit(!isRunning ? "send" : event.ctrlKey || event.metaKey ? "steer" : "queue");
  }

  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); void submit(isRunning ? "queue" : "send"); }}>
      {pictures.length > 0 && (
        <ul class="thumbs">
          {pictures.map((url, index) => (
            <li key={index}>
              <img src={url} alt={t("picture")} />
              <IconButton icon="x" label={t("removePicture")} onClick={() => setPictures(pictures.filter((_, at) => at !== index))} />
            </li>
          ))}
        </ul>
      )}
      <div class="composer-row">
        <IconButton icon="image" label={t("addPicture")} onClick={() => chooser.current?.click()} />
        <input
          ref={chooser} type="file" accept="image/*" multiple hidden
          onChange={(event) => { void addPictures([...(event.currentTarget.files ?? [])]); event.currentTarget.value = ""; }}
        />
        <textarea
          ref={area} rows={1} dir="auto" value={text} aria-label={t("writeMessage")} placeholder={t("writeMessage")}
          onInput={(event) => write(event.currentTarget.value)}
          onKeyDown={onKey}
          onPaste={(event) => {
            const files = picturesOf(event.clipboardData);
            if (files.length) {
              event.preventDefault();
              void addPictures(files);
            }
          }}
        />
        {isRunning && (text.trim() || pictures.length > 0) && (
          <>
            <Button kind="quiet" onClick={() => void submit("steer")}>{t("steer")}</Button>
            <Button kind="plain" onClick={() => void submit("queue")}>{t("queue")}</Button>
          </>
        )}
        {isRunning
          ? <button type="button" class="round stop" aria-label={t("stop")} title={`${t("stop")} (Esc)`} onClick={onStop}><span class="square" /></button>
          : (
            <button type="submit" class="round" aria-label={t("send")} title={t("send")} disabled={isSending || (!text.trim() && !pictures.length)}>
              <svg class="icon" width="18" height="18" viewBox="0 0 24 24" aria-hidden="true"><path d="M12 19V6M6 11.500l6-6 6 6" /></svg>
            </button>
          )}
      </div>
      <p class="hint">{isRunning ? t("busyHint") : t("sendHint")}</p>
    </form>
  );
}
