// The forms: explain, purge (counted first, done when confirmed) and drain.

import { read, write } from './ask.js'
import { element } from './draw.js'

/** @param {string} text */
const say = (text) => {
  element('outcome').textContent = text
}

/** @param {{ status: number, content: { detail?: string, title?: string } }} answer */
const fault = ({ status, content }) =>
  `Refused (${status}): ${content.detail ?? content.title ?? 'no reason given'}`

/** @type {(() => Promise<void>) | undefined} */
let pending

/** @param {string} question @param {() => Promise<void>} action */
const confirmFirst = (question, action) => {
  pending = action
  const place = element('confirm')
  const text = place.querySelector('span')
  if (text !== null) text.textContent = question
  place.hidden = false
  element('no').focus()
}

const forget = () => {
  pending = undefined
  element('confirm').hidden = true
}

/**
 * Runs what a form asks for, and says when the gateway cannot be reached.
 * @param {string} id
 * @param {(data: FormData) => Promise<void>} action
 */
const onSubmit = (id, action) => {
  const form = /** @type {HTMLFormElement} */ (element(id))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    forget()
    action(new FormData(form)).catch(() => say('The gateway did not answer.'))
  })
}

/** @param {FormData} data */
const purgeOf = (data) => {
  const by = String(data.get('by'))
  return { [by]: by === 'all' ? true : String(data.get('value')), mode: String(data.get('mode')) }
}

/** @param {FormData} data */
const askPurge = async (data) => {
  const asked = purgeOf(data)
  const counted = await write('cache/purge', { ...asked, dryRun: true })
  if (!counted.ok) return say(fault(counted))
  const verb = asked['mode'] === 'soft' ? 'mark as stale' : 'drop'
  say(`${counted.content.entries} stored responses are concerned.`)
  confirmFirst(`Really ${verb} ${counted.content.entries} stored responses?`, async () => {
    const done = await write('cache/purge', asked)
    say(done.ok ? `Done: ${done.content.entries} stored responses.` : fault(done))
  })
}

const askDrain = async () =>
  confirmFirst(
    'Really drain? It takes no new requests from then on, finishes what it has and ends.',
    async () => {
      const done = await write('drain', {})
      say(done.ok ? 'Draining.' : fault(done))
    },
  )

/** @param {FormData} data */
const explain = async (data) => {
  const query = new URLSearchParams({ method: String(data.get('method')), url: String(data.get('url')) })
  const header = String(data.get('header'))
  if (header !== '') query.set('header', header)
  const answer = await read(`explain?${query}`)
  const place = element('explanation')
  element('explained').hidden = false
  place.textContent = answer.ok ? JSON.stringify(answer.content, null, 2) : fault(answer)
}

/** Makes the forms work. */
export const listen = () => {
  onSubmit('purge', askPurge)
  onSubmit('drain', askDrain)
  onSubmit('explain', explain)
  element('no').addEventListener('click', () => {
    forget()
    say('Nothing was done.')
  })
  element('yes').addEventListener('click', () => {
    const action = pending
    forget()
    action?.().catch(() => say('The gateway did not answer.'))
  })
}
