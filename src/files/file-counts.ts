import { KlatchError } from '../errors.ts';
import { SourceAbortedError } from './upload-stream.ts';
import { StoreUnavailableError, StoreFullError } from './store.ts';

/** How a request that brings bytes of a file ends. `paused`: a part of a resumable upload that was taken. */
const uploadOutcomes = [
  'stored',
  'paused',
  'cut',
  'slow',
  'too_large',
  'space_full',
  'uploads_full',
  'conflict',
  'store_full',
  'store_away',
  'stopped',
  'failed',
] as const;
export type UploadOutcome = (typeof uploadOutcomes)[number];

/** What is counted of files; for metrics. */
export class FileCounts {
  readonly uploads = Object.fromEntries(uploadOutcomes.map((name) => [name, 0])) as Record<UploadOutcome, number>;
  bytesReceived = 0;
  bytesSent = 0;
}

const OUTCOMES: Readonly<Partial<Record<KlatchError['code'], UploadOutcome>>> = {
  request_timeout: 'slow',
  too_large: 'too_large',
  space_full: 'space_full',
  limit_reached: 'uploads_full',
  uploads_full: 'uploads_full',
  upload_conflict: 'conflict',
  upload_locked: 'conflict',
  upload_over: 'conflict',
  stopping: 'stopped',
};

/** Under what a failed upload is counted. */
export function outcomeOf(error: unknown): UploadOutcome {
  if (error instanceof SourceAbortedError) return 'cut';
  if (error instanceof StoreFullError) return 'store_full';
  if (error instanceof StoreUnavailableError) return 'store_away';
  return (error instanceof KlatchError ? OUTCOMES[error.code] : undefined) ?? 'failed';
}
