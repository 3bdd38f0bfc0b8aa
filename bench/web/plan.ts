/** The amount of work in each part of a run. */
export interface WebPlan {
  /** The number of measurements of each time; their median counts. */
  readonly rounds: number;
  /** The number of messages that the person at the browser sends in a round. */
  readonly ownMessages: number;
  readonly longMessages: number;
  /** The number of pixels by which the page scrolls the long conversation in each frame. */
  readonly scrollStepPx: number;
  readonly drags: number;
  readonly jumps: number;
  /** The seconds of scrolling during which the browser is traced. */
  readonly tracedSeconds: number;
  readonly anchorEvents: number;
  readonly flood: { readonly perSecond: number; readonly seconds: number };
  readonly groups: {
    readonly count: number;
    readonly perSecond: number;
    readonly seconds: number;
    readonly sampleSeconds: number;
  };
}

const FULL: WebPlan = {
  rounds: 7,
  ownMessages: 5,
  longMessages: 100_000,
  scrollStepPx: 2_400,
  drags: 20,
  jumps: 50,
  tracedSeconds: 10,
  anchorEvents: 500,
  flood: { perSecond: 1_000, seconds: 60 },
  groups: { count: 50, perSecond: 200, seconds: 600, sampleSeconds: 30 },
};

/** A short run, which only shows that everything works; its figures decide nothing. */
const QUICK: WebPlan = {
  ...FULL,
  rounds: 2,
  ownMessages: 2,
  scrollStepPx: 60_000,
  drags: 4,
  jumps: 10,
  tracedSeconds: 3,
  anchorEvents: 35,
  flood: { perSecond: 1_000, seconds: 5 },
  groups: { count: 50, perSecond: 200, seconds: 30, sampleSeconds: 5 },
};

export const isQuick = (): boolean => (process.env['QUICK'] ?? '') !== '';

export const planOf = (): WebPlan => (isQuick() ? QUICK : FULL);
