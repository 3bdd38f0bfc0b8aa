import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

const MARGIN_PX = 8;

/** An entry of a menu. */
export interface MenuItem {
  readonly label: string;
  /** The key that runs the same action without the menu. */
  readonly keyName: string | null;
  readonly run: () => void;
}

interface MessageMenuProps {
  readonly label: string;
  readonly items: readonly MenuItem[];
  /** The element beside which the menu appears. */
  readonly anchor: HTMLElement;
  /** The element that gets the focus when a person closes the menu by a key or chooses an entry. */
  readonly returnFocusTo: HTMLElement;
  readonly onClose: () => void;
}

/** The menu of a message. It lies over the page, so that nothing moves. */
export function MessageMenu({ label, items, anchor, returnFocusTo, onClose }: MessageMenuProps) {
  const menu = useRef<HTMLDivElement>(null);
  useMenuPosition(menu, anchor);
  useDismissal(menu, anchor, onClose);
  const closeAndFocusMessage = (): void => {
    returnFocusTo.focus({ preventScroll: true });
    onClose();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const buttons = [...menu.current!.querySelectorAll('button')];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    if (event.key === 'ArrowDown') buttons[(at + 1) % buttons.length]?.focus();
    else if (event.key === 'ArrowUp') buttons.at(at - 1)?.focus();
    else if (event.key === 'Home') buttons[0]?.focus();
    else if (event.key === 'End') buttons.at(-1)?.focus();
    else if (event.key === 'Escape' || event.key === 'Tab') closeAndFocusMessage();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="menu" role="menu" aria-label={label} ref={menu} onKeyDown={onKeyDown}>
      {items.map(({ label, keyName, run }) => (
        <button
          key={label}
          type="button"
          role="menuitem"
          tabIndex={-1}
          aria-keyshortcuts={keyName ?? undefined}
          onClick={() => {
            closeAndFocusMessage();
            run();
          }}
        >
          <span>{label}</span>
          {keyName === null ? null : <kbd aria-hidden="true">{keyName}</kbd>}
        </button>
      ))}
    </div>
  );
}

/** Places the menu below the anchor, or above it if there is no room; never beyond an edge of the window. */
function useMenuPosition(menu: RefObject<HTMLDivElement | null>, anchor: HTMLElement): void {
  useLayoutEffect(() => {
    const { offsetWidth: width, offsetHeight: height, style } = menu.current!;
    const { bottom, top, right } = anchor.getBoundingClientRect();
    const below = bottom + MARGIN_PX / 2;
    const isRoomBelow = below + height + MARGIN_PX <= innerHeight;
    const wantedTop = isRoomBelow ? below : top - height - MARGIN_PX / 2;
    style.top = `${Math.min(Math.max(MARGIN_PX, wantedTop), Math.max(MARGIN_PX, innerHeight - height - MARGIN_PX))}px`;
    style.left = `${Math.max(MARGIN_PX, Math.min(right, innerWidth - MARGIN_PX) - width)}px`;
    menu.current!.querySelector('button')?.focus({ preventScroll: true });
  }, [anchor]);
}

/**
 * Closes the menu when the person acts elsewhere. If it stayed while its message scrolls away, it would lie over
 * another message.
 */
function useDismissal(menu: RefObject<HTMLDivElement | null>, anchor: HTMLElement, onClose: () => void): void {
  useEffect(() => {
    const onElsewhere = ({ target }: Event): void => {
      // Ignores a click on the anchor, which closes the menu itself.
      const isInside = [menu.current, anchor].some((each) => target instanceof Node && each?.contains(target) === true);
      if (!isInside) onClose();
    };
    const events = ['pointerdown', 'wheel', 'touchmove'] as const;
    for (const name of events) addEventListener(name, onElsewhere, { capture: true, passive: true });
    addEventListener('resize', onClose);
    return () => {
      for (const name of events) removeEventListener(name, onElsewhere, { capture: true });
      removeEventListener('resize', onClose);
    };
  }, [anchor, onClose]);
}
