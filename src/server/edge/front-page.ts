import { createHash } from 'node:crypto'

const digestOf = (script: string): string =>
  `'sha256-${createHash('sha256').update(script).digest('base64')}'`

/** HTML in front of the services: only its own scripts run, and only for requests to the gateway itself. */
export const frontPageHeaders = (html: string): Readonly<Record<string, string>> => {
  const scripts = [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, script = '']) =>
    digestOf(script),
  )
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': [
      "default-src 'none'",
      `script-src ${scripts.length === 0 ? "'none'" : scripts.join(' ')}`,
      "style-src 'unsafe-inline'",
      'img-src data:',
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  }
}
