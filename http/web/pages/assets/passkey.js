// Passkeys on the pages "Sign in" and "Security". The page brings a challenge in data-get or data-create; the answer of
// the device goes into the form, which is then sent as any other.
const supported = window.PublicKeyCredential?.parseRequestOptionsFromJSON && PublicKeyCredential.parseCreationOptionsFromJSON;

for (const form of document.querySelectorAll('form[data-get], form[data-create]')) {
  if (!supported) continue;
  form.hidden = false;
  const said = form.querySelector('[role=status]');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    said.textContent = '';
    try {
      const credential = form.dataset.get
        ? await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(form.dataset.get)) })
        : await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(JSON.parse(form.dataset.create)) });
      form.elements.answer.value = JSON.stringify(credential.toJSON());
      form.submit(); // sends no further submit event
    } catch (error) {
      said.textContent = error.name === 'InvalidStateError' ? 'This device has a passkey for the account already.' : 'No passkey was used. You can try again.';
    }
  });
}
