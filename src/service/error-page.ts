import { STATUS_CODES } from 'node:http'
import { type Placeholder, placeholder } from '../config/error-page.ts'
import type { GatewayError } from '../errors.ts'
import { countText } from '../http/count-text.ts'

/** HTML of an error for people; `id`: of the request. */
export type ErrorPage = (error: GatewayError, id: string) => string

/** No script, nothing of other origins; an own page may have styles and the pictures of its site. */
export const errorPagePolicy = [
  "default-src 'none'",
  "img-src 'self' data:",
  "font-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** For a visitor: what happened, without a word about the upstream. */
const messages: Readonly<Record<number, string>> = {
  404: 'There is no page at this address.',
  429: 'Too many requests have come from you in a short time.',
  500: 'Something went wrong on our side.',
  502: 'The site does not answer correctly at the moment.',
  503: 'The site is busy or being worked on at the moment.',
  504: 'The site took too long to answer.',
}

const wait = (seconds: number): string =>
  seconds < 120
    ? countText(Math.max(1, seconds), 'second')
    : seconds < 7_200
      ? countText(Math.ceil(seconds / 60), 'minute')
      : countText(Math.ceil(seconds / 3_600), 'hour')

const retryText = ({ retryAfterSeconds, facts }: GatewayError): string => {
  if (retryAfterSeconds !== undefined) return `Please try again in ${wait(retryAfterSeconds)}.`
  return facts.retryable ? 'Please try again in a moment.' : ''
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => escapes[character] ?? '')

const ownTemplate = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>{{status}} {{title}}</title>
<style>
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 15vh auto 2rem; padding: 0 1.5rem }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 1rem }
small { overflow-wrap: anywhere }
</style>
<main>
<h1>{{message}}</h1>
<p>{{retryAfter}}</p>
<p><small>{{status}} {{title}}, request {{requestId}}</small></p>
</main>
</html>
`

/** `template`: the content of an own file; '' for the page of the gateway. */
export const createErrorPage = (template: string): ErrorPage => {
  // The names of placeholders are at odd places, the text between them at even ones.
  const parts = (template === '' ? ownTemplate : template).split(placeholder)
  return (error, id) => {
    const { status } = error.facts
    const values: Readonly<Record<Placeholder, string>> = {
      status: String(status),
      title: STATUS_CODES[status] ?? 'Error',
      message: messages[status] ?? error.message,
      requestId: id,
      retryAfter: retryText(error),
    }
    return parts.map((part, at) => (at % 2 === 0 ? part : escaped(values[part as Placeholder]))).join('')
  }
}

/** For requests of no service. */
export const plainErrorPage = createErrorPage('')
