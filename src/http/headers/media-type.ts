import type { ResponseHead } from '../message.ts'
import { headerValue } from './header-lines.ts'

/** Type and subtype of a Content-Type in lower case, without parameters (RFC 9110 §8.3.1). */
export const essence = (contentType = ''): string => (contentType.split(';', 1)[0] ?? '').trim().toLowerCase()

const eventStream = /^\s*text\/event-stream\s*(?:;|$)/i

/**
 * Server-sent events (HTML, section 9.2): pieces that are of use only at once, in a response that may be silent for long and never
 * ends. Other types do not say so of themselves.
 */
export const isEventStream = (head: ResponseHead): boolean =>
  eventStream.test(headerValue(head.headers, 'content-type') ?? '')
