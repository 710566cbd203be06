import * as z from 'zod'
import { corsOrigin, duration, flag, headerName, inMs, oneOf } from './leaves.ts'

/** Of pages of other origins: of all services, or of one. */
export const cors = z
  .strictObject({
    origins: z
      .array(corsOrigin)
      .max(1_000)
      .prefault([])
      .describe('Origins whose pages may call the gateway; [] = the upstream decides'),
    methods: z
      .array(oneOf(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']))
      .prefault(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
      .describe('Methods those pages may use'),
    headers: z
      .array(headerName)
      .max(100)
      .prefault([
        'Authorization',
        'Content-Type',
        'X-WP-Nonce',
        'X-HTTP-Method-Override',
        'If-Match',
        'If-None-Match',
        'Content-Disposition',
        'Content-MD5',
        'Idempotency-Key',
        'X-Api-Key',
        'traceparent',
        'tracestate',
      ])
      .describe('Request headers those pages may send'),
    exposedHeaders: z
      .array(headerName)
      .max(100)
      .prefault([
        'X-WP-Total',
        'X-WP-TotalPages',
        'Link',
        'Location',
        'ETag',
        'Cache-Status',
        'X-Request-Id',
        'Retry-After',
        'Age',
        'Allow',
        'RateLimit',
        'RateLimit-Policy',
      ])
      .describe('Response headers those pages may read'),
    credentials: flag.prefault(false).describe('Allow cookies and HTTP authentication'),
    maxAge: duration.prefault('10m').describe('How long a browser may cache a preflight'),
  })
  .transform(inMs('maxAge'))
