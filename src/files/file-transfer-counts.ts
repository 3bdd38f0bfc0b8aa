import { KlatchError } from '../errors.ts';
import { SourceAbortedError } from './upload-stream.ts';
import { StoreUnavailableError, StoreFullError } from './store.ts';

/**
 * The outcomes of a request that uploads bytes of a file. `paused`: the bytes are stored, but the resumable upload is
 * not complete.
 */
const uploadOutcomes = [
  'stored',
  'paused',
  'cut',
  'slow',
  'too_large',
  'storage_quota_exceeded',
  'too_many_uploads',
  'conflict',
  'storage_full',
  'storage_unavailable',
  'stopped',
  'failed',
] as const;
export type UploadOutcome = (typeof uploadOutcomes)[number];

/** Counts of file transfers since the start of the process, for metrics. */
export class FileTransferCounts {
  readonly uploads = Object.fromEntries(uploadOutcomes.map((name) => [name, 0])) as Record<UploadOutcome, number>;
  bytesReceived = 0;
  bytesSent = 0;
}

const OUTCOME_BY_ERROR_CODE: Readonly<Partial<Record<KlatchError['code'], UploadOutcome>>> = {
  request_timeout: 'slow',
  too_large: 'too_large',
  storage_quota_exceeded: 'storage_quota_exceeded',
  quota_exceeded: 'too_many_uploads',
  too_many_uploads: 'too_many_uploads',
  upload_conflict: 'conflict',
  upload_locked: 'conflict',
  upload_expired: 'conflict',
  stopping: 'stopped',
};

/** The outcome under which a failed upload is counted. */
export function failedUploadOutcome(error: unknown): UploadOutcome {
  if (error instanceof SourceAbortedError) return 'cut';
  if (error instanceof StoreFullError) return 'storage_full';
  if (error instanceof StoreUnavailableError) return 'storage_unavailable';
  return (error instanceof KlatchError ? OUTCOME_BY_ERROR_CODE[error.code] : undefined) ?? 'failed';
}
