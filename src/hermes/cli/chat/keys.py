"""The keys of the chat: those of the input line, of an open menu, and of the window."""

from __future__ import annotations

from typing import Protocol

from prompt_toolkit.filters import Condition, completion_is_selected
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys


class KeyActions(Protocol):
    """What the keys do."""

    @property
    def has_menu(self) -> bool: ...

    def submit(self, event: KeyPressEvent) -> None: ...
    def paste(self, event: KeyPressEvent) -> None: ...
    def interrupt(self, event: KeyPressEvent) -> None: ...
    def take_back(self, event: KeyPressEvent) -> None: ...
    def clear_screen(self) -> None: ...
    def terminal_answered(self, data: str) -> None: ...
    def menu_move(self, by: int) -> None: ...
    def menu_pick(self) -> None: ...
    def menu_close(self) -> None: ...
    def menu_erase(self) -> None: ...
    def menu_type(self, character: str) -> None: ...


def bindings(actions: KeyActions) -> KeyBindings:
    keys = KeyBindings()
    _bind_input(keys, actions)
    _bind_menu(keys, actions)

    @keys.add(Keys.CPRResponse, eager=True, save_before=lambda _: False)
    def _(event: KeyPressEvent) -> None:
        actions.terminal_answered(event.data)

    @keys.add("c-l", eager=True)
    def _(_event: KeyPressEvent) -> None:
        actions.clear_screen()

    @keys.add("c-c", eager=True)
    def _(event: KeyPressEvent) -> None:
        actions.interrupt(event)

    return keys


def _bind_input(keys: KeyBindings, actions: KeyActions) -> None:
    no_menu = Condition(lambda: not actions.has_menu)

    @keys.add("c-j", filter=no_menu, eager=True)  # Enter as it was typed before the prompt stood
    @keys.add("enter", filter=no_menu & ~completion_is_selected, eager=True)
    def _(event: KeyPressEvent) -> None:
        actions.submit(event)

    @keys.add("enter", filter=no_menu & completion_is_selected, eager=True)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("escape", "enter", filter=no_menu)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add(Keys.BracketedPaste, filter=no_menu)
    def _(event: KeyPressEvent) -> None:
        actions.paste(event)

    @keys.add("escape", filter=no_menu)
    def _(event: KeyPressEvent) -> None:
        actions.take_back(event)


def _bind_menu(keys: KeyBindings, actions: KeyActions) -> None:
    has_menu = Condition(lambda: actions.has_menu)

    @keys.add("up", filter=has_menu, eager=True)
    @keys.add("c-p", filter=has_menu, eager=True)
    def _(_event: KeyPressEvent) -> None:
        actions.menu_move(-1)

    @keys.add("down", filter=has_menu, eager=True)
    @keys.add("c-n", filter=has_menu, eager=True)
    @keys.add("tab", filter=has_menu, eager=True)
    def _(_event: KeyPressEvent) -> None:
        actions.menu_move(1)

    @keys.add("enter", filter=has_menu, eager=True)
    def _(_event: KeyPressEvent) -> None:
        actions.menu_pick()

    @keys.add("escape", filter=has_menu, eager=True)
    @keys.add("c-d", filter=has_menu, eager=True)
    def _(_event: KeyPressEvent) -> None:
        actions.menu_close()

    @keys.add("backspace", filter=has_menu, eager=True)
    def _(_event: KeyPressEvent) -> None:
        actions.menu_erase()

    @keys.add(Keys.Any, filter=has_menu, eager=True)
    def _(event: KeyPressEvent) -> None:
        actions.menu_type(event.data)

    @keys.add(Keys.BracketedPaste, filter=has_menu, eager=True)
    def _(_event: KeyPressEvent) -> None:
        """A paste picks nothing."""
