import type { Uploads } from '../files/uploads.ts';
import { samplesByLabel, counter, gauge, singleSample, type MetricFamily } from './family.ts';

/** Metrics on uploads into the store, and on downloads through this process. */
export function fileFamilies(uploads: Uploads): MetricFamily[] {
  const { counts } = uploads;
  return [
    gauge({ name: 'klatch_uploads_in_progress', help: 'Uploads from which bytes arrive right now.' }, () =>
      singleSample(uploads.running),
    ),
    counter(
      {
        name: 'klatch_uploads_total',
        help: 'Requests that sent a file or a part of one, by outcome; paused: a part was stored, and the rest follows.',
        labels: ['outcome'],
      },
      () => samplesByLabel('outcome', counts.uploads),
    ),
    counter({ name: 'klatch_file_received_bytes_total', help: 'Bytes of files that came from clients.' }, () =>
      singleSample(counts.bytesReceived),
    ),
    counter({ name: 'klatch_file_sent_bytes_total', help: 'Bytes of files that this process sent to clients.' }, () =>
      singleSample(counts.bytesSent),
    ),
  ];
}
