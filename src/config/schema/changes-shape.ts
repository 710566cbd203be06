import * as z from 'zod'
import { duration, inMs, secret, wait } from './leaves.ts'

const leastTokenLength = 16
const shortestPollMs = 100

/** How changes that bypass the gateway are reported to it. */
export const changes = () =>
  z
    .strictObject({
      token: secret()
        .refine(
          (token) => !token.isSet || token.reveal().length >= leastTokenLength,
          `expected at least ${leastTokenLength} characters: openssl rand -hex 32`,
        )
        .prefault('')
        .describe('Secret. For requests that report changes, at least 16 characters; empty = off'),
      poll: wait()
        .refine((ms) => ms === 0 || ms >= shortestPollMs, 'expected 0s, or at least 100ms')
        .optional()
        .describe('How often the log of changes is read; 0s = never; empty = 5s for `site`, otherwise never'),
      ttlWhileHeard: duration()
        .prefault('7d')
        .describe('Lifetime in place of the `ttl` of a rule, while polls succeed'),
    })
    .transform(({ poll: pollMs, ...rest }) => inMs('ttlWhileHeard')({ ...rest, pollMs }))
    .optional()
