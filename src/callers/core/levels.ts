import type { Mood } from './message-form.ts';

/** No known level is longer. The bound keeps a text of a mebibyte from being searched. */
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

/** Null for a level that is not known to mean anything. */
export function moodOfLevel(level: string): Mood | null {
  return level.length > MAX_LEVEL_LENGTH ? null : (MOOD_BY_LEVEL.get(level.trim().toLowerCase()) ?? null);
}
