import type { RefusedPostRecorder } from '../operations/core/refused-post-recorder.ts';
import type { MessageLog } from '../storage/messages/message-log.ts';
import { samplesByLabel, counter, gauge, histogram, singleSample, type MetricFamily } from './family.ts';

/** Metrics on the intake of posts into the message log. */
export function intakeFamilies(log: MessageLog): MetricFamily[] {
  const { counts } = log;
  return [
    counter(
      {
        name: 'klatch_intake_posts_total',
        help: 'Posts that were committed (new), or recognised by their key and not written again (repeat).',
        labels: ['outcome'],
      },
      () => samplesByLabel('outcome', { new: counts.posted, repeat: counts.repeats }),
    ),
    counter({ name: 'klatch_intake_commits_total', help: 'Commits of posts.' }, () => singleSample(counts.commits)),
    counter(
      {
        name: 'klatch_intake_failed_commits_total',
        help: 'Attempts to commit posts that failed, among them those that were repeated.',
      },
      () => singleSample(counts.failedCommits),
    ),
    counter(
      {
        name: 'klatch_intake_outage_refusals_total',
        help: 'Posts that were refused because the database was unavailable for longer than limits.intake-timeout.',
      },
      () => singleSample(counts.outageRefusals),
    ),
    histogram({ name: 'klatch_intake_commit_posts', help: 'Posts that were committed together.' }, () =>
      singleSample(counts.batchPosts.read()),
    ),
    histogram({ name: 'klatch_intake_commit_duration_seconds', help: 'How long a commit of posts took.' }, () =>
      singleSample(counts.commitS.read()),
    ),
    gauge({ name: 'klatch_intake_queue_posts', help: 'Posts that wait for their commit.' }, () =>
      singleSample(log.depth),
    ),
    gauge({ name: 'klatch_intake_queue_bytes', help: 'Memory of the posts that wait for their commit.' }, () =>
      singleSample(log.depthBytes),
    ),
    gauge({ name: 'klatch_intake_blocked_posts', help: 'Waiting posts whose group somebody holds locked.' }, () =>
      singleSample(log.blockedPosts),
    ),
  ];
}

/** Metrics on posts that were refused before they reached the message log. */
export function refusedPostFamilies({ counts }: RefusedPostRecorder): MetricFamily[] {
  return [
    counter(
      {
        name: 'klatch_refused_posts_total',
        help: 'Posts with a valid token that were refused for their content, by the format in which they were read.',
        labels: ['format'],
      },
      () => samplesByLabel('format', counts.byFormat),
    ),
    counter(
      {
        name: 'klatch_refused_posts_unrecorded_total',
        help: 'Refused posts of which no group keeps a record, since too many groups had some at once.',
      },
      () => singleSample(counts.dropped),
    ),
  ];
}
