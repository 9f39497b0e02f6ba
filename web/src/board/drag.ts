/**
 * Drag and drop by pointer: mouse, pen and finger alike. A finger has to rest for a moment first, so that the board can
 * still be scrolled. The card itself stays where it is; a copy follows the pointer.
 */
import { useEffect, useRef, useState } from "preact/hooks";

export interface Place {
  column: string;
  /** The card before which it would come, or null at the end. */
  before: number | null;
}
interface Dragging {
  id: number;
  place: Place | null;
}

const MOVE_PIXELS = 6;
const HOLD_MILLISECONDS = 220;

function placeAt(x: number, y: number, id: number): Place | null {
  const column = document.elementsFromPoint(x, y).map((element) => element.closest<HTMLElement>("[data-column]")).find(Boolean);
  if (!column) return null;
  const cards = [...column.querySelectorAll<HTMLElement>("[data-card]")].filter((card) => Number(card.dataset["card"]) !== id);
  const next = cards.find((card) => {
    const box = card.getBoundingClientRect();
    return y < box.top + box.height / 2;
  });
  return { column: column.dataset["column"] ?? "", before: next ? Number(next.dataset["card"]) : null };
}

export function useDrag(onDrop: (id: number, place: Place) => void): { dragging: Dragging | null; start: (event: PointerEvent, id: number) => void } {
  const [dragging, setDragging] = useState<Dragging | null>(null);
  const drop = useRef(onDrop);
  drop.current = onDrop;
  const cancel = useRef<() => void>(() => undefined);
  useEffect(() => () => cancel.current(), []);

  function start(down: PointerEvent, id: number): void {
    const card = down.currentTarget as HTMLElement;
    if (down.button !== 0 || (down.target as Element).closest("button, a, select, input")) return;
    let ghost: HTMLElement | null = null;
    let place: Place | null = null;
    let isHeld = down.pointerType === "mouse";
    const box = card.getBoundingClientRect();
    const hold = setTimeout(() => { isHeld = true; if (!ghost) lift(down); }, HOLD_MILLISECONDS);

    function lift(at: PointerEvent): void {
      if (down.pointerType === "mouse" && at === down) return; // a mouse lifts by moving
      ghost = card.cloneNode(true) as HTMLElement;
      ghost.classList.add("ghost");
      ghost.removeAttribute("data-card");
      ghost.style.width = `${box.width}px`;
      document.body.append(ghost);
      follow(at);
      setDragging({ id, place: null });
    }
    function follow(at: PointerEvent): void {
      if (!ghost) return;
      ghost.style.transform = `translate(${box.left + at.clientX - down.clientX}px, ${box.top + at.clientY - down.clientY}px) rotate(1deg)`;
      place = placeAt(at.clientX, at.clientY, id);
      setDragging({ id, place });
      const scroller = card.closest<HTMLElement>(".board");
      if (scroller && at.clientX > innerWidth - 40) scroller.scrollLeft += 12;
      else if (scroller && at.clientX < 40 + scroller.getBoundingClientRect().left) scroller.scrollLeft -= 12;
    }
    function move(at: PointerEvent): void {
      if (at.pointerId !== down.pointerId) return;
      const isFar = Math.hypot(at.clientX - down.clientX, at.clientY - down.clientY) > MOVE_PIXELS;
      if (!ghost && isFar && !isHeld) return end(); // a finger that moves at once scrolls
      if (!ghost && isFar) lift(at);
      if (ghost) {
        at.preventDefault();
        follow(at);
      }
    }
    function noScroll(event: TouchEvent): void {
      if (ghost) event.preventDefault();
    }
    function up(at: PointerEvent): void {
      if (at.pointerId !== down.pointerId) return;
      const isDropped = ghost !== null && place !== null;
      const target = place;
      end();
      if (isDropped && target) drop.current(id, target);
    }
    function key(event: KeyboardEvent): void {
      if (event.key === "Escape") end();
    }
    function end(): void {
      clearTimeout(hold);
      ghost?.remove();
      ghost = null;
      setDragging(null);
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", end);
      removeEventListener("keydown", key);
      removeEventListener("touchmove", noScroll);
      cancel.current = () => undefined;
    }
    cancel.current = end;
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    addEventListener("pointercancel", end);
    addEventListener("keydown", key);
    addEventListener("touchmove", noScroll, { passive: false });
  }
  return { dragging, start };
}
