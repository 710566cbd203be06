// Requests to the admin side. Addresses are relative: a proxy may serve the page below a path.

import { element } from './draw.js'

/** The token stays in the field: the browser stores nothing. */
const authorization = () => {
  const token = /** @type {HTMLInputElement} */ (element('token')).value
  return token === '' ? {} : { Authorization: `Bearer ${token}` }
}

/** Where no token is needed, none is asked for. @param {number} status */
const asksForToken = (status) => {
  if (status === 401) element('credential-section').hidden = false
}

/** Without a timeout, a gateway that accepts the connection and sends nothing would look alive. */
const timeoutMs = 10_000

/** @param {string} address */
export const read = async (address) => {
  const answer = await fetch(address, {
    headers: authorization(),
    cache: 'no-store',
    signal: AbortSignal.timeout(timeoutMs),
  })
  asksForToken(answer.status)
  return { ok: answer.ok, status: answer.status, content: await answer.json() }
}

/** @param {string} address @param {unknown} content @param {'POST' | 'PUT'} [method] */
export const write = async (address, content, method = 'POST') => {
  const answer = await fetch(address, {
    method,
    headers: { 'Content-Type': 'application/json', ...authorization() },
    body: JSON.stringify(content),
  })
  asksForToken(answer.status)
  return { ok: answer.ok, status: answer.status, content: await answer.json() }
}
