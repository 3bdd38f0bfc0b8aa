import type { IncomingMessage } from 'node:http';
import { isFromGitHost } from '../../callers/core/caller-format.ts';
import type { LimitsConfig } from '../../config/config.ts';
import { WEBHOOK_POST_LIMITS } from '../../operations/core/input-limits.ts';
import { originalUrlOf } from '../responses.ts';
import { alertUpdateModeOf } from './alert-report.ts';
import type { PostContext } from './caller-input.ts';
import { callerRouteOf, noteFormat } from './caller-route.ts';

const GIT_FORMATS: ReadonlySet<string> = new Set(['github', 'gitlab', 'gitea']);

/** Whether the address or a header says that a git host sent the request: its events are larger than other posts. */
export function mayBeGitEvent(req: IncomingMessage): boolean {
  const format = callerRouteOf(req)?.format;
  if (format !== undefined && format !== null && GIT_FORMATS.has(format.name)) return true;
  return isFromGitHost({ headers: req.headers as Readonly<Record<string, string | undefined>> });
}

/** The context of a request's post. Throws KlatchError for an invalid parameter `updates` of the address. */
export function postContext(
  req: IncomingMessage,
  limits: Pick<LimitsConfig, 'textCodePoints' | 'attachmentsPerMessage' | 'fileBytes' | 'hopLimit'>,
  {
    hasAttachments = false,
    isUnsigned = false,
  }: { readonly hasAttachments?: boolean; readonly isUnsigned?: boolean } = {},
): PostContext {
  const url = originalUrlOf(req);
  return {
    headers: req.headers,
    url,
    format: callerRouteOf(req)?.format ?? null,
    maxTextCodePoints: limits.textCodePoints,
    attachmentsPerMessage: limits.attachmentsPerMessage,
    fileBytes: limits.fileBytes,
    hopLimit: limits.hopLimit,
    jsonLimits: WEBHOOK_POST_LIMITS,
    hasAttachments,
    alertUpdateMode: alertUpdateModeOf(url),
    isUnsigned,
    onFormat: (format) => noteFormat(req, format),
  };
}
