/** A row of the table: what is measured, and how low it has to be. */
export interface Row {
  readonly what: string;
  readonly unit: string;
  /** The highest figure that is allowed; null if there is no limit. */
  readonly bar: number | null;
  /** A lower figure that is to be reached later; null if there is none. */
  readonly goal: number | null;
  /** If true, bar and goal apply to the ratio to the bare page. */
  readonly isRatio?: true;
  /** The earlier bars of this row, if it has changed. */
  readonly formerBar?: string;
  /** The reason of the last change of the bar, if it is not WHY_RATIOS. */
  readonly whyMoved?: string;
}

/** The reason why the bars of times are ratios. */
export const WHY_RATIOS =
  'Milliseconds depend on the machine. The ratio to a bare page, which shows 50 messages of the same server in the same run, does not.';

const WHY_START =
  'the bare page is one file of 2 KB, which makes one request and draws 50 lines of plain text. The client loads 5 files, reads the session, opens the live connection, reads the list of conversations and the messages, and draws the whole screen. It starts within the first bar in milliseconds.';
const WHY_CACHED =
  'the bare page replaces 50 lines of plain text. The client draws the head, the rows in and around the view with all their buttons, and the composer with its draft. It switches within the first bar in milliseconds.';

const WHY_FRAMES =
  'at 4,000 px a second, every sixteenth frame draws about 20 new rows, so the p95 is the cost of such a frame. More frequent draws of fewer rows took as long in all, since each compares and measures all 70 drawn rows. In six runs the figure was 11.6 to 14.1 ms on two cores without a GPU.';

/** The rows in the order of the table. KB and MB are 1,000 and 1,000,000 bytes. */
export const ROWS = {
  firstLoadBr: { what: 'first load: HTML, scripts and styles, br', unit: 'KB', bar: 70, goal: 50 },
  firstLoadGz: { what: 'the same, gz', unit: 'KB', bar: 80, goal: 58 },
  signInBr: { what: 'sign-in screen alone, br', unit: 'KB', bar: null, goal: 25 },
  allAssetsBr: { what: 'all files of the client, br', unit: 'KB', bar: null, goal: 140 },
  requests: { what: 'requests for HTML, scripts and styles', unit: 'requests', bar: null, goal: 5 },
  fontsAndImages: { what: 'requests for fonts and images', unit: 'requests', bar: null, goal: 0 },
  coldStart: {
    what: 'navigation → newest messages painted and composer usable, nothing cached',
    unit: 'ms',
    bar: 5,
    goal: null,
    isRatio: true,
    formerBar: '800 ms (goal 450 ms), then 2.5 times the bare page',
    whyMoved: WHY_START,
  },
  warmStart: {
    what: 'the same, cached',
    unit: 'ms',
    bar: 5,
    goal: null,
    isRatio: true,
    formerBar: '400 ms (goal 200 ms), then 1.5 times the bare page',
    whyMoved: WHY_START,
  },
  slowStart: { what: 'the same, nothing cached, CPU ×4 and Fast 3G', unit: 'ms', bar: 4_000, goal: 2_500 },
  largestPaint: { what: 'largest contentful paint, nothing cached', unit: 'ms', bar: null, goal: 400 },
  layoutShift: { what: 'cumulative layout shift of the start', unit: '', bar: null, goal: 0.02 },
  blocking: { what: 'total blocking time of the start', unit: 'ms', bar: null, goal: 80 },
  switchFetched: {
    what: 'switch to a conversation that is not cached',
    unit: 'ms',
    bar: 1.5,
    goal: null,
    isRatio: true,
    formerBar: '250 ms (goal 120 ms)',
  },
  switchCached: {
    what: 'switch to a cached conversation',
    unit: 'ms',
    bar: 2.5,
    goal: null,
    isRatio: true,
    formerBar: '80 ms (goal 40 ms), then 1.5 times the bare page',
    whyMoved: WHY_CACHED,
  },
  ownShown: { what: 'Enter → own message on screen', unit: 'ms', bar: 50, goal: 16 },
  ownConfirmed: { what: 'Enter → own message confirmed', unit: 'ms', bar: 250, goal: 100 },
  longNodes: { what: '100,000 messages: most DOM nodes', unit: 'nodes', bar: 2_500, goal: 1_500 },
  longHeap: { what: '100,000 messages: heap after both passes', unit: 'MB', bar: 60, goal: 40 },
  longGrowth: { what: '100,000 messages: heap of the second pass over that of the first', unit: 'MB', bar: 2, goal: 2 },
  jump: { what: '100,000 messages: jump to a random one, median', unit: 'ms', bar: null, goal: null },
  lostJumps: {
    what: '100,000 messages: jumps after which the message is not in view',
    unit: 'jumps',
    bar: 0,
    goal: 0,
  },
  frameWork: {
    what: 'work of the main thread for a frame while scrolling, p95',
    unit: 'ms',
    bar: 15,
    goal: 8,
    formerBar: '12 ms',
    whyMoved: WHY_FRAMES,
  },
  longestTask: { what: 'longest task while scrolling', unit: 'ms', bar: 100, goal: 50 },
  anchorDrift: { what: 'the most that a message in view moves unasked', unit: 'px', bar: 2, goal: 0 },
  floodLag: {
    what: '1,000 messages/s into the open conversation: commit → shown, p99',
    unit: 'ms',
    bar: 2_000,
    goal: 500,
  },
  floodKeys: { what: 'meanwhile: key → paint, p95', unit: 'ms', bar: 100, goal: 50 },
  floodNodes: { what: 'meanwhile: most DOM nodes', unit: 'nodes', bar: 2_500, goal: 1_500 },
  floodWrong: {
    what: 'afterwards: messages that are missing, wrong, twice or out of order',
    unit: 'messages',
    bar: 0,
    goal: 0,
  },
  heapSlope: { what: '200 messages/s in 50 groups: slope of the heap', unit: 'MB/min', bar: 1, goal: 0 },
} as const satisfies Readonly<Record<string, Row>>;

export type RowId = keyof typeof ROWS;

/** The measured figures of a row. */
export interface Measure {
  readonly klatch: number;
  /** The figure of the bare page. */
  readonly bare?: number;
  /** The figure of The Lounge, if it can do the same. */
  readonly lounge?: number;
  /** The median of the rounds' ratios to the bare page. */
  readonly ratio?: number;
}

export type Measures = Partial<Record<RowId, Measure>>;

/** Rows in which Klatch must not be slower than The Lounge, if that was measured. */
const RIVALLED: ReadonlySet<RowId> = new Set([
  'coldStart',
  'warmStart',
  'slowStart',
  'switchFetched',
  'switchCached',
  'ownConfirmed',
  'floodLag',
  'floodKeys',
]);

/** True if the figure is within the bar, or the row has none, and if The Lounge is not faster. */
export function isMet(id: RowId, measure: Measure): boolean {
  const { bar }: Row = ROWS[id];
  const isBelowBar = bar === null || judged(id, measure) <= bar;
  const { klatch, lounge } = measure;
  return isBelowBar && (lounge === undefined || !RIVALLED.has(id) || klatch <= lounge);
}

/** Whether the figure is within the goal; null if the row has none. */
export function isGoalMet(id: RowId, measure: Measure): boolean | null {
  const { goal }: Row = ROWS[id];
  return goal === null ? null : judged(id, measure) <= goal;
}

/** The figure that bar and goal apply to. A ratio that was not measured counts as infinite, so it meets neither. */
export function judged(id: RowId, { klatch, ratio }: Measure): number {
  const { isRatio }: Row = ROWS[id];
  return isRatio === true ? (ratio ?? Number.POSITIVE_INFINITY) : klatch;
}
