import { Component, createRef, type ComponentChildren, type JSX } from 'preact';
import { RowHeights } from './row-heights.ts';

/** The number of rows that are drawn beyond each edge of the view, so that scrolling and screen readers find them. */
const ROWS_BEYOND_VIEW = 30;
/** If fewer drawn rows than this are beyond an edge of the view, the list draws other rows around the view. */
const LEAST_ROWS_BEYOND_VIEW = 12;
/** The height of the previous page that stays in view after a page key. */
const PAGE_OVERLAP_PX = 60;
/** A list that is scrolled to within this distance of its end stays at its end when rows are added. */
const END_TOLERANCE_PX = 80;

/** The rows in view, by their indexes. */
export interface ListView {
  readonly firstRow: number;
  readonly lastRow: number;
  /** The last row whose end is in view; -1: none. */
  readonly lastWholeRow: number;
  readonly isAtEnd: boolean;
}

interface VirtualListProps {
  /**
   * Holds the list while it is in the document. It is not named `ref`, which Preact 11 passes to a class component as
   * any other property.
   */
  readonly handle: { current: VirtualList | null };
  readonly rowCount: number;
  readonly renderRow: (index: number) => JSX.Element;
  /** False for a row whose content is not loaded yet: its height will change. */
  readonly isReady: (index: number) => boolean;
  /** The row in view when the list opens, a third of the view below its top; null: the list opens at its end. */
  readonly startIndex: number | null;
  readonly label: string;
  /** The row that has the focus, and so stays in the document wherever the view is; null: none. */
  readonly pinnedIndex: number | null;
  /** Whether a list at its end must not scroll to added rows, because a menu or picture is open. */
  readonly keepsView: () => boolean;
  readonly onView: (view: ListView) => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
  /** Called with the row that has or contains the focus; null: the focus has left the list. */
  readonly onFocusedRow: (index: number | null) => void;
  /** Called when a pointer is pressed in the list. */
  readonly onPointerDown: () => void;
  /** The content after the rows. */
  readonly children: ComponentChildren;
}

interface DrawnRows {
  readonly fromRow: number;
  readonly toRow: number;
}

/**
 * A list of which only the rows around the view are drawn. Row i never changes its index: rows are only added at the
 * end. The rows in view do not move when heights above them become known or change. A list at its end stays at its end.
 */
export class VirtualList extends Component<VirtualListProps, DrawnRows> {
  /** The rows in view; null: the list has not measured them yet. */
  view: ListView | null = null;
  readonly #heights = new RowHeights();
  readonly #feed = createRef<HTMLDivElement>();
  readonly #spacer = createRef<HTMLDivElement>();
  readonly #drawnRows = createRef<HTMLDivElement>();
  readonly #childrenAfterRows = createRef<HTMLDivElement>();
  readonly #observer = new ResizeObserver(() => this.#measureAndScroll());
  /** The row that does not move, and the distance from the top of the view to the beginning of that row. */
  #anchor = { index: 0, below: 0 };
  /** True: the anchor was chosen after the person scrolled. False: the caller of this class asked to show it. */
  #isAnchorByScroll = false;
  #isAtEnd = true;
  /**
   * The scroll position that the list itself set last; -1 after a person scrolled. The browser reports such writes as
   * scroll events.
   */
  #writtenScrollTop = -1;
  /** The scroll position that the list last processed. */
  #seenScrollTop = 0;
  #width = 0;
  /** The greatest scroll position that was possible at the last measurement. */
  #maxScrollTop = 0;
  /** The row that gets the focus once it has its message; null: none waits for the focus. */
  #indexToFocus: number | null = null;
  #pinnedRow: HTMLElement | null = null;
  #isPointerDown = false;

  constructor(props: VirtualListProps) {
    super(props);
    const { rowCount: count, startIndex } = props;
    this.#heights.setRowCount(count);
    this.#isAtEnd = startIndex === null;
    this.#anchor = { index: Math.min(startIndex ?? count, Math.max(0, count - 1)), below: 0 };
    this.state = this.#rowsAround(this.#anchor.index, this.#anchor.index);
  }

  override componentDidMount(): void {
    this.props.handle.current = this;
    // The upper third of the view shows the rows before the one at which the list opens.
    if (!this.#isAtEnd) this.#anchor.below = this.#feed.current!.clientHeight / 3;
    for (const { current } of [this.#feed, this.#drawnRows, this.#childrenAfterRows]) this.#observer.observe(current!);
    for (const name of ['pointerup', 'pointercancel'] as const) addEventListener(name, this.#onPointerUp);
    this.#measureAndScroll();
  }

  override getSnapshotBeforeUpdate(): Element | null {
    const { activeElement } = document;
    return this.#feed.current?.contains(activeElement) === true ? activeElement : null;
  }

  override componentDidUpdate(_props: VirtualListProps, _rows: DrawnRows, focused: Element | null): void {
    this.#measureAndScroll();
    // If nothing has the focus now, this update removed the element that had the focus, such as the button that undoes
    // a deletion.
    if (focused !== null && document.activeElement === document.body) this.#focusMessage(this.props.pinnedIndex);
    if (this.#indexToFocus !== null) this.#focusWantedRow();
  }

  override componentWillUnmount(): void {
    for (const name of ['pointerup', 'pointercancel'] as const) removeEventListener(name, this.#onPointerUp);
    this.#observer.disconnect();
    this.props.handle.current = null;
  }

  jumpToEnd(): void {
    // Removes a selection of text, which would keep the view in place.
    if (this.#hasSelection()) getSelection()?.removeAllRanges();
    this.#isAtEnd = true;
    this.#isAnchorByScroll = false;
    this.#maxScrollTop = -1;
    this.#anchor = { index: Math.max(0, this.props.rowCount - 1), below: 0 };
    this.setState(this.#rowsAround(this.#anchor.index, this.#anchor.index));
  }

  jumpTo(index: number): void {
    this.#isAtEnd = false;
    this.#isAnchorByScroll = false;
    this.#anchor = { index, below: this.#feed.current!.clientHeight / 3 };
    this.setState(this.#rowsAround(index, index));
  }

  /** Scrolls by a page. The list treats it like a scroll by the user. */
  scrollByPage(direction: 1 | -1): void {
    const feed = this.#feed.current!;
    feed.scrollTop += direction * (feed.clientHeight - PAGE_OVERLAP_PX);
    // Handles the scroll at once: the scroll event comes later, and an update before the event would restore the old
    // position.
    this.#onScroll();
  }

  /** Moves the focus to the message of a row and scrolls the row into view, as soon as the row has its message. */
  focusRow(index: number): void {
    this.#indexToFocus = index;
    const { fromRow: from, toRow: to } = this.state;
    // Until the row has its message, the list has the focus and gets the key presses.
    if (index < from || index >= to) this.#focusMessage(null);
    if (index < from || index >= to) this.jumpTo(index);
    else this.#focusWantedRow();
  }

  /** The row a page above or below another row; at least the next row in that direction. */
  rowAPageFrom(index: number, direction: 1 | -1): number {
    const distance = this.#feed.current!.clientHeight - PAGE_OVERLAP_PX;
    const found = this.#heights.indexAt(Math.max(0, this.#heights.offsetOf(index) + direction * distance));
    return direction < 0 ? Math.min(found, index - 1) : Math.max(found, index + 1);
  }

  #focusWantedRow(): void {
    const index = this.#indexToFocus!;
    if (!this.#focusMessage(index)) return;
    this.#indexToFocus = null;
    this.#rowOf(index)!.scrollIntoView({ block: 'nearest' });
    this.#onScroll();
  }

  /**
   * Moves the focus to the message of a row. False: `index` is null or the row has no message, so the list got the
   * focus instead.
   */
  #focusMessage(index: number | null): boolean {
    const article = index === null ? null : this.#rowOf(index)?.querySelector<HTMLElement>('article');
    (article ?? this.#feed.current!).focus({ preventScroll: true });
    return article !== null && article !== undefined;
  }

  #rowOf(index: number): HTMLElement | null {
    return this.#drawnRows.current!.querySelector<HTMLElement>(`:scope > [data-index="${index}"]`);
  }

  #rowsAround(first: number, last: number): DrawnRows {
    return {
      fromRow: Math.max(0, first - ROWS_BEYOND_VIEW),
      toRow: Math.min(this.props.rowCount, last + ROWS_BEYOND_VIEW + 1),
    };
  }

  /**
   * Measures the drawn rows, and scrolls so that the anchor (the row that must not move) keeps its place in the view.
   */
  #measureAndScroll(): void {
    const [feed, space, drawn] = [this.#feed.current!, this.#spacer.current!, this.#drawnRows.current!];
    this.#heights.setRowCount(this.props.rowCount);
    if (feed.clientWidth !== this.#width) this.#heights.clear();
    this.#width = feed.clientWidth;
    this.#placePinnedRow();
    for (const row of drawn.children) {
      const height = row.getBoundingClientRect().height;
      if (height > 0) this.#heights.set(Number((row as HTMLElement).dataset['index']), height);
    }
    space.style.height = `${this.#heights.totalHeight}px`;
    drawn.style.transform = `translateY(${this.#heights.offsetOf(this.state.fromRow)}px)`;
    const maxScrollTop = feed.scrollHeight - feed.clientHeight;
    const isEndMoved = this.#isAtEnd && maxScrollTop !== this.#maxScrollTop;
    const keepsView = isEndMoved && this.#keepsView();
    if (keepsView) this.#isAtEnd = this.#isNearEnd();
    const followsEnd = isEndMoved && !keepsView;
    this.#maxScrollTop = maxScrollTop;
    const top = followsEnd ? maxScrollTop : this.#heights.offsetOf(this.#anchor.index) - this.#anchor.below;
    if (Math.abs(feed.scrollTop - top) >= 0.5) feed.scrollTop = top;
    this.#writtenScrollTop = feed.scrollTop;
    this.#seenScrollTop = this.#writtenScrollTop;
    // Near the beginning or end of the list the view cannot scroll to the anchor's position: a new anchor is chosen.
    if (Math.abs(this.#writtenScrollTop - top) > 1 || followsEnd) this.#anchorAt(this.#writtenScrollTop);
    else if (this.#isAnchorByScroll && this.#mayAnchorAgain()) this.#anchorAt(top);
    this.#draw();
  }

  /**
   * Whether the list may choose a new anchor: after a resize, a row above the present anchor may begin in view. If the
   * present anchor has its content, all drawn rows must have theirs. Otherwise content that arrives later below the new
   * anchor would move rows.
   */
  #mayAnchorAgain(): boolean {
    return !this.props.isReady(this.#anchor.index) || this.#drawnRows.current!.querySelector('.unloaded') === null;
  }

  /** Whether the view must not move, because the person selects text, holds a pointer down or has a menu open. */
  #keepsView(): boolean {
    return this.#isPointerDown || this.props.keepsView() || this.#hasSelection();
  }

  #hasSelection(): boolean {
    const selection = getSelection();
    return selection?.isCollapsed === false && this.#feed.current!.contains(selection.anchorNode);
  }

  /** Positions the pinned row, which has the focus, if it is outside the range of drawn rows. */
  #placePinnedRow(): void {
    const { fromRow: from, toRow: to } = this.state;
    const index = this.props.pinnedIndex;
    const row = index === null || (index >= from && index < to) ? null : this.#rowOf(index);
    if (this.#pinnedRow !== null && this.#pinnedRow !== row) this.#pinnedRow.removeAttribute('style');
    this.#pinnedRow = row;
    if (row === null) return;
    const top = this.#heights.offsetOf(index!) - this.#heights.offsetOf(from);
    Object.assign(row.style, { position: 'absolute', insetInline: '0', top: `${top}px` });
  }

  /**
   * Anchors the first row that begins in view and has its content, so that its height no longer changes. If there is
   * none, anchors the first row in view.
   */
  #anchorAt(top: number): void {
    const bottom = top + this.#feed.current!.clientHeight;
    const indexAtTop = this.#heights.indexAt(top);
    let index: number | null = null;
    for (let each = indexAtTop; each < this.props.rowCount && this.#heights.offsetOf(each) < bottom; each += 1) {
      if (this.#heights.offsetOf(each) < top) continue;
      index ??= each;
      if (!this.props.isReady(each)) continue;
      index = each;
      break;
    }
    index ??= indexAtTop;
    this.#anchor = { index, below: this.#heights.offsetOf(index) - top };
  }

  readonly #onScroll = (): void => {
    const feed = this.#feed.current!;
    this.#seenScrollTop = feed.scrollTop;
    if (Math.abs(feed.scrollTop - this.#writtenScrollTop) < 1) return;
    this.#writtenScrollTop = -1;
    this.#indexToFocus = null;
    this.#isAnchorByScroll = true;
    this.#anchorAt(feed.scrollTop);
    this.#isAtEnd = this.#isNearEnd();
    this.#draw();
  };

  readonly #onPointerDown = (): void => {
    this.#isPointerDown = true;
    this.props.onPointerDown();
  };

  readonly #onPointerUp = (): void => {
    this.#isPointerDown = false;
  };

  readonly #onFocusIn = ({ target }: FocusEvent): void => {
    // The browser may have scrolled to the element that Tab leads to. The scroll is handled here, because the scroll
    // event comes later: an update before the event would restore the old position.
    if (this.#feed.current!.scrollTop !== this.#seenScrollTop) this.#onScroll();
    const row = target instanceof Element ? target.closest<HTMLElement>('[data-index]') : null;
    if (row !== null) this.props.onFocusedRow(Number(row.dataset['index']));
  };

  readonly #onFocusOut = ({ relatedTarget }: FocusEvent): void => {
    // If `relatedTarget` is null, the window has lost the focus, or the element that had the focus was removed.
    if (!(relatedTarget instanceof Node) || this.#feed.current!.contains(relatedTarget)) return;
    this.#indexToFocus = null;
    this.props.onFocusedRow(null);
  };

  #isNearEnd(): boolean {
    const { scrollHeight, scrollTop, clientHeight } = this.#feed.current!;
    return scrollHeight - scrollTop - clientHeight <= END_TOLERANCE_PX;
  }

  /** Draws other rows around the view if the view is near an edge of the drawn rows. */
  #draw(): void {
    const feed = this.#feed.current!;
    const { rowCount: count } = this.props;
    const bottom = feed.scrollTop + feed.clientHeight;
    const first = this.#heights.indexAt(feed.scrollTop);
    const last = this.#heights.indexAt(bottom);
    const { fromRow: from, toRow: to } = this.state;
    const areDrawnRowsEnough =
      from <= Math.max(0, first - LEAST_ROWS_BEYOND_VIEW) &&
      to >= Math.min(count, last + 1 + LEAST_ROWS_BEYOND_VIEW) &&
      to <= count;
    if (!areDrawnRowsEnough) this.setState(this.#rowsAround(first, last));
    // Looks for the end only once enough rows are drawn: with estimated heights the end may be far below the view.
    else if (this.#isNearEnd()) this.#isAtEnd = true;
    const isLastWhole = this.#heights.offsetOf(last + 1) <= bottom + 1;
    this.view = { firstRow: first, lastRow: last, lastWholeRow: isLastWhole ? last : last - 1, isAtEnd: this.#isAtEnd };
    this.props.onView(this.view);
  }

  override render(): JSX.Element {
    const { rowCount: count, renderRow, isReady, label, children, pinnedIndex, onKeyDown } = this.props;
    const { fromRow: from, toRow: to } = this.state;
    const rows: JSX.Element[] = [];
    if (pinnedIndex !== null && pinnedIndex < from) rows.push(renderRow(pinnedIndex));
    let isAnyReady = count === 0;
    for (let index = from; index < Math.min(to, count); index += 1) {
      rows.push(renderRow(index));
      isAnyReady ||= isReady(index);
    }
    if (pinnedIndex !== null && pinnedIndex >= to && pinnedIndex < count) rows.push(renderRow(pinnedIndex));
    return (
      <div
        class="feed"
        role={count === 0 ? 'group' : 'feed'}
        aria-busy={!isAnyReady}
        aria-label={label}
        tabIndex={-1}
        ref={this.#feed}
        onScroll={this.#onScroll}
        onKeyDown={onKeyDown}
        onPointerDown={this.#onPointerDown}
        onFocusIn={this.#onFocusIn}
        onFocusOut={this.#onFocusOut}
      >
        <div class="feed-space" ref={this.#spacer}>
          <div class="feed-rows" ref={this.#drawnRows}>
            {rows}
          </div>
        </div>
        <div ref={this.#childrenAfterRows}>{children}</div>
      </div>
    );
  }
}
