//! The chain of a controller: the services that its apps need, and then the apps.
