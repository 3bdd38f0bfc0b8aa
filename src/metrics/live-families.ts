import type { Live } from '../live/live.ts';
import { liveTransports } from '../model/transport.ts';
import { samplesByLabel, counter, gauge, singleSample, type MetricFamily, type MetricSample } from './family.ts';

/**
 * Metrics on live clients: their number, the messages sent to them, and the reasons why their connections were closed.
 */
export function liveFamilies(live: Live): MetricFamily[] {
  const { counts, feeds, sessions } = live;
  return [
    gauge(
      { name: 'klatch_live_sessions', help: 'Connections of clients by state.', labels: ['transport', 'state'] },
      () =>
        sessions
          .tallyByTransportAndState()
          .map(({ kind, state, sessions }) => ({ labels: { transport: kind, state }, value: sessions })),
    ),
    gauge(
      {
        name: 'klatch_live_send_queue_bytes',
        help: 'Bytes that wait until clients read them.',
        labels: ['transport'],
      },
      () => sendQueueBytesByTransport(live),
    ),
    counter(
      {
        name: 'klatch_live_rejections_total',
        help: 'Connections that were rejected, by reason.',
        labels: ['reason'],
      },
      () => samplesByLabel('reason', counts.rejected),
    ),
    counter(
      { name: 'klatch_live_disconnects_total', help: 'Connections that ended, by reason.', labels: ['reason'] },
      () => samplesByLabel('reason', counts.disconnected),
    ),
    counter(
      {
        name: 'klatch_live_frames_received_total',
        help: 'Texts from clients: requests, and signs of life.',
        labels: ['transport'],
      },
      () => samplesByLabel('transport', counts.framesIn),
    ),
    counter(
      {
        name: 'klatch_live_frames_sent_total',
        help: 'Texts to clients: answers, changes, signals.',
        labels: ['transport'],
      },
      () => samplesByLabel('transport', counts.framesOut),
    ),
    gauge({ name: 'klatch_live_feeds', help: 'Conversations that somebody follows through this process.' }, () =>
      singleSample(feeds.feedCount),
    ),
    counter(
      {
        name: 'klatch_live_change_reads_total',
        help: 'Reads of changes: for all followers at once, for one that lacks some, or spared since another had read it.',
        labels: ['purpose'],
      },
      () => samplesByLabel('purpose', counts.reads),
    ),
  ];
}

function sendQueueBytesByTransport({ sessions }: Live): MetricSample<number>[] {
  const rows = sessions.tallyByTransportAndState();
  return liveTransports.map((kind) => ({
    labels: { transport: kind },
    value: rows.filter((row) => row.kind === kind).reduce((sum, row) => sum + row.tallyRowQueuedBytesSum, 0),
  }));
}
