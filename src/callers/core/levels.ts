import type { Mood } from './message-form.ts';

/** A text longer than this is not looked up: no level in the table is longer, and the text may have a mebibyte. */
const MAX_LEVEL_LENGTH = 20;
const MOOD_BY_LEVEL: ReadonlyMap<string, Mood> = new Map<string, Mood>([
  ...['ok', 'up', 'online', 'good', 'healthy', 'success', 'passed', 'resolved', 'recovery', 'recovered'].map(
    (level) => [level, 'good'] as const,
  ),
  ...['info', 'information', 'notice'].map((level) => [level, 'info'] as const),
  ...['warn', 'warning', 'average', 'medium', 'degraded'].map((level) => [level, 'warning'] as const),
  ...['error', 'err', 'critical', 'crit', 'alert', 'alerting', 'emergency', 'fatal', 'disaster', 'problem', 'high'].map(
    (level) => [level, 'danger'] as const,
  ),
  ...['failure', 'failed', 'down', 'offline', 'unhealthy', 'firing'].map((level) => [level, 'danger'] as const),
]);

/** The mood for a level such as "warning"; null for an unknown level. */
export function moodOfLevel(level: string): Mood | null {
  return level.length > MAX_LEVEL_LENGTH ? null : (MOOD_BY_LEVEL.get(level.trim().toLowerCase()) ?? null);
}
