import { GatewayError } from '../../errors.ts'
import { requestField } from '../../http/fields.ts'
import type { Matched } from '../exchange.ts'
import type { Phase } from '../phase.ts'

/** RFC 6750 §2.1: the scheme in any case, then one token68. */
const bearer = /^bearer +[A-Za-z0-9._~+/-]+=*$/i

/** A credential must be there where the contract demands one. Whether it is good, only the upstream knows. */
export const authorize = (): Phase<Matched> => ({
  name: 'authorize',
  run: (exchange, next) => {
    if (exchange.service.requiresBearer) {
      const credential = requestField(exchange.request.fields, 'authorization')
      if (credential === undefined || !bearer.test(credential)) {
        throw new GatewayError('credential_missing', {
          fields: ['WWW-Authenticate', `Bearer realm="${exchange.service.name}"`],
        })
      }
    }
    return next(exchange)
  },
})
