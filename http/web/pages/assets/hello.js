// The gateway does not know the hour of its reader, so the page says hello without script.
const hour = new Date().getHours();
document.getElementById('hello').textContent = hour < 12 ? 'Good morning' : hour < 18 ? 'Good afternoon' : 'Good evening';
