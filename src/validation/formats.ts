import { isIPv6 } from 'node:net'
import { parseDateTime } from './date-time.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const hexColor = /^#(?:[A-Fa-f0-9]{3}|[A-Fa-f0-9]{6})$/
const byte = '(?:25[0-5]|2[0-4]\\d|[01]?\\d\\d?)'
const ipv4 = new RegExp(`^(?:${byte}\\.){3}${byte}$`)
const localPart = /^[a-zA-Z0-9!#$%&'*+/=?^_`{|}~.-]+$/
const domainLabel = /^[a-zA-Z0-9-]+$/

/** WordPress's idea of an address: one @, a dotted domain, ASCII only; narrower than RFC 5322 and wider than DNS. */
const isEmail = (text: string): boolean => {
  const at = text.indexOf('@')
  if (text.length < 6 || at < 1 || !localPart.test(text.slice(0, at))) return false
  const labels = text.slice(at + 1).split('.')
  return (
    labels.length >= 2 &&
    labels.every((label) => domainLabel.test(label) && !label.startsWith('-') && !label.endsWith('-'))
  )
}

const isIp = (text: string): boolean => ipv4.test(text) || (isIPv6(text) && !text.includes('%'))

type FormatFacts = { readonly code: string; message(path: string): string; accepts(text: string): boolean }

/** Formats that WordPress checks. `uri` is not among them: it only cleans such values. */
export const formats: ReadonlyMap<string, FormatFacts> = new Map<string, FormatFacts>([
  [
    'hex-color',
    {
      code: 'rest_invalid_hex_color',
      message: () => 'Invalid hex color.',
      accepts: (text) => hexColor.test(text),
    },
  ],
  [
    'date-time',
    {
      code: 'rest_invalid_date',
      message: () => 'Invalid date.',
      accepts: (text) => parseDateTime(text) !== undefined,
    },
  ],
  ['email', { code: 'rest_invalid_email', message: () => 'Invalid email address.', accepts: isEmail }],
  ['ip', { code: 'rest_invalid_ip', message: (path) => `${path} is not a valid IP address.`, accepts: isIp }],
  [
    'uuid',
    {
      code: 'rest_invalid_uuid',
      message: (path) => `${path} is not a valid UUID.`,
      accepts: (text) => uuid.test(text),
    },
  ],
])
